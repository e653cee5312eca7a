"""What the judges of both vendors have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

import attrs
from attrs.validators import ge

from keval import Rubric, Score, Trial
from keval.plugin import JudgeContext, StructuredRequest, TrialError
from keval_judges.grader import Api, ask_for_scores, encodable, read_verdict
from keval_judges.prompt import Sheet, prompt

if TYPE_CHECKING:
    from keval_judges.claims import ClaimsRequest
    from keval_judges.expectations import ExpectationsRequest


@attrs.define
class LlmJudge(ABC):
    """What the judges of both vendors have in common: an API, connected when it is first needed.

    Of a tool result that is longer than `longest_result` characters, a judge of claims sees the beginning.
    """

    providers: ClassVar[tuple[str, ...]]
    kinds: ClassVar[tuple[str, ...]] = ("levels", "claims")
    applies_middleware: ClassVar[bool] = True
    client_module: ClassVar[str]
    """The module of the vendor's client, which imports an HTTP client: checking a config need not."""

    longest_result: int = attrs.field(default=20_000, kw_only=True, validator=ge(1))
    _api: Api | None = attrs.field(default=None, init=False, repr=False, eq=False)

    async def prepare(self) -> None:
        """Import the HTTP client, beside the event loop, and build the model's."""
        await asyncio.to_thread(import_module, self.client_module)
        self.ready()

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        """Grade by levels in one request, and in others by claims and expectations; see `keval.plugin.Judge`.

        If one of the latter fails, the scores of those before it stand.
        """
        api, graded = self.ready(), dict[str, Score | TrialError]()
        if levels := [rubric for rubric in rubrics if rubric.kind == "levels"]:
            sheet = Sheet.of(levels, answered=trial.sample.answer is not None)
            graded = await ask_for_scores(api, sheet, prompt(trial), lambda reply: read_verdict(reply, sheet), context)
        for asked in self._by_share(trial, [rubric for rubric in rubrics if rubric.kind == "claims"]):
            alone = not graded
            graded |= asked.unscored
            try:
                if asked.sheet.rubrics:
                    graded |= await ask_for_scores(api, asked.sheet, asked.message, asked.read, context)
            except TrialError as error:
                if alone:
                    raise
                graded |= {rubric.name: error for rubric in asked.sheet.rubrics.values()}
        return graded

    def _by_share(self, trial: Trial, rubrics: Sequence[Rubric]) -> Iterator[ClaimsRequest | ExpectationsRequest]:
        """Yield the requests that these rubrics take: one for what is expected, and one for all other shares."""
        # Only such rubrics need the modules.
        if claims := [rubric for rubric in rubrics if rubric.share != "expected"]:
            from keval_judges.claims import ClaimsRequest

            yield ClaimsRequest.of(trial, claims, self.longest_result)
        if expected := [rubric for rubric in rubrics if rubric.share == "expected"]:
            from keval_judges.expectations import ExpectationsRequest

            yield ExpectationsRequest.of(trial, expected, self.longest_result)

    async def reply(self, request: StructuredRequest, context: JudgeContext) -> str:
        """Ask the model for something else than a judgement; see `keval.plugin.RepliesInJson`."""
        sheet = Sheet({}, request.schema, request.instructions, tool="reply")
        reply = await self.ready().ask(sheet, request.message, context)
        context.builder.model_called(reply.usage)
        if reply.fault is not None:
            raise TrialError(f"the model's reply cannot be used: {reply.fault}", stage="model", kind="bad_reply")
        return encodable(reply.text)

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        api, self._api = self._api, None
        if api is not None:
            await api.aclose()

    def ready(self) -> Api:
        """Return the API, connected."""
        if self._api is None:
            self._api = self._connect()
        return self._api

    @abstractmethod
    def _connect(self) -> Api:
        """Return the vendor's API at the model's endpoint."""
