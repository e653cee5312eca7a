"""The judge `anthropic`: its options."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal

import attrs
from attrs.validators import ge

from keval import Rubric, Score, Trial
from keval.plugin import JudgeContext, Model, TrialError
from keval_judges.grader import Grader
from keval_judges.messages import Messages

__all__ = ["Anthropic"]


@attrs.define
class Anthropic:
    """Grades over Anthropic's Messages, which take no seed.

    `structured` is how the verdict's form is asked for; a model that refuses `json_schema` is made to call a tool.
    """

    providers: ClassVar[tuple[str, ...]] = ("anthropic",)
    applies_middleware: ClassVar[bool] = True

    model: Model = attrs.field(metadata={"provider": "anthropic"})
    temperature: float | None = 0.0
    max_tokens: int = attrs.field(default=4096, validator=ge(1))
    structured: Literal["json_schema", "tool"] = "json_schema"
    _grader: Grader | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        # The core adds the endpoint before the first trial: the moment to find that it speaks another protocol.
        if self.model.endpoint is not None:
            self.model.reach("anthropic")

    async def prepare(self) -> None:
        """Import the SDK, beside the event loop, and build the client."""
        await asyncio.to_thread(import_module, "keval_clients.anthropic")
        self._ready()

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        """Grade by all rubrics in one request; see `keval.plugin.Judge`."""
        return await self._ready().grade(trial, rubrics, context)

    def _ready(self) -> Grader:
        if self._grader is None:
            from keval_clients.anthropic import build  # the SDK takes a second to import: checking a config need not

            _, url, endpoint = self.model.reach("anthropic")
            settings: dict[str, Any] = {"max_tokens": self.max_tokens}
            if self.temperature is not None:
                settings["temperature"] = self.temperature
            self._grader = Grader(Messages(build(url, endpoint), self.structured, settings))
        return self._grader

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        grader, self._grader = self._grader, None
        if grader is not None:
            await grader.api.aclose()
