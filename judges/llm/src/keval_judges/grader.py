"""The grader: one judgement, asked for once more where the reply is none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

import attrs

from keval import Rubric, Score, Trial, Usage
from keval.plugin import JudgeContext, TrialError
from keval_judges.prompt import prompt
from keval_judges.sheet import Sheet
from keval_judges.verdict import Verdict, encodable, read_verdict

__all__ = ["Api", "Grader", "Reply"]

_ASKINGS = 2

_AGAIN = """

Your reply to this message could not be used:
{faults}
Grade the response anew, and give the whole verdict in the form you were told."""


@attrs.frozen
class Reply:
    """What the model said, and what it cost.

    `fault` says why it is no verdict, where that shows before it is read. `refused` are the fields of the request that
    the model did not take.
    """

    text: str
    usage: Usage | None = None
    fault: str | None = None
    refused: tuple[str, ...] = ()


class Api(Protocol):
    """A vendor's API."""

    async def ask(self, sheet: Sheet, message: str, context: JudgeContext) -> Reply:
        """Send the sheet's instructions and a user message; raises TrialError when no reply comes."""
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


@attrs.define
class Grader:
    """Grades trials over one API; what does not vary between them is made once."""

    api: Api
    _sheets: dict[Hashable, Sheet] = attrs.field(factory=dict, init=False, repr=False)

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> dict[str, Score | TrialError]:
        """Return a score per rubric: the first that a reply has for it, or an error after two replies without.

        The second request says what was wrong with the first reply, as the same request would get the same reply. When
        it fails, the scores of the first reply stand.

        Raises:
            TrialError: a request failed, and there is no score.
        """
        sheet = self._sheet(rubrics, answered=trial.sample.answer is not None)
        message = asked = prompt(trial)
        scores: dict[str, Score] = {}
        faults: Mapping[str, str] = {}
        claims: tuple[str, ...] | None = None
        failed: TrialError | None = None
        for _ in range(_ASKINGS):
            try:
                reply = await self.api.ask(sheet, message, context)
            except TrialError as error:
                if not scores:
                    raise
                failed = error
                break
            context.recorder.model_called(reply.usage)
            verdict = Verdict.unusable(reply.fault, sheet) if reply.fault else read_verdict(reply.text, sheet)
            # The first score stands: one must not be rolled again because another could not be read.
            scores = {**_with_refused(verdict.scores, reply.refused), **scores}
            if claims is None and verdict.claims is not None:
                claims = verdict.claims
                context.recorder.unverified(claims)
            faults = verdict.faults
            if not faults:
                break
            context.recorder.rejected(encodable(reply.text))
            message = asked + _AGAIN.format(faults="\n".join(f"- {key}: {fault}" for key, fault in faults.items()))
        return {rubric.name: scores.get(key) or _unscored(faults[key], failed) for key, rubric in sheet.rubrics.items()}

    def _sheet(self, rubrics: Sequence[Rubric], *, answered: bool) -> Sheet:
        # By what they say, as rubrics hold mappings and have no hash.
        key = (answered, *((r.name, r.instructions, *sorted(r.levels.items())) for r in rubrics))
        if key not in self._sheets:
            self._sheets[key] = Sheet.of(rubrics, answered=answered)
        return self._sheets[key]


def _with_refused(scores: Mapping[str, Score], refused: tuple[str, ...]) -> Mapping[str, Score]:
    """Say in scores which options they were made without."""
    if not refused:
        return scores
    return {key: attrs.evolve(score, details={"refused": [*refused]}) for key, score in scores.items()}


def _unscored(fault: str, failed: TrialError | None) -> TrialError:
    """Return why a rubric has no score: its fault in the last reply, and the error when another was asked for."""
    if failed is None:
        return TrialError(f"two replies of the judge could not be used: {fault}", stage="score", kind="bad_reply")
    message = f"a reply of the judge could not be used: {fault}; asked once more, it failed: {failed}"
    return TrialError(message, stage="score", kind=failed.kind)
