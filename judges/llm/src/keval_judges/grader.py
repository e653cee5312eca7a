"""The grader: one judgement, asked for once more where the reply cannot be used, and the verdict that a reply gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from keval import Rubric, Score, Trial, Usage
from keval.plugin import JudgeContext, TrialError
from keval_judges.prompt import CLAIMS, Sheet, prompt

_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)


@attrs.frozen
class Verdict:
    """What a reply says: scores and faults by their key in it, and the claims, `None` when they are at fault."""

    scores: Mapping[str, Score] = attrs.field(factory=dict)
    faults: Mapping[str, str] = attrs.field(factory=dict)
    claims: tuple[str, ...] | None = None

    @classmethod
    def unusable(cls, fault: str, sheet: Sheet) -> Verdict:
        """Return the verdict of a reply that says nothing of what was asked for."""
        return cls(faults=dict.fromkeys((*sheet.rubrics, *sheet.schema["properties"]), fault))


def read_verdict(reply: str, sheet: Sheet) -> Verdict:
    """Read a reply that is JSON, at most in one Markdown fence. A part at fault leaves the other parts standing."""
    try:
        data = read_object(reply)
    except ValueError as error:
        return Verdict.unusable(str(error), sheet)
    scores, faults = read_scores(data, sheet, _score)
    claims = _claims(data.get(CLAIMS))
    if claims is None:
        faults[CLAIMS] = "it is no list of texts"
    return Verdict(scores, faults, claims)


def read_scores(
    data: Mapping[str, Any], sheet: Sheet, read: Callable[[object, Rubric], Score | str]
) -> tuple[dict[str, Score], dict[str, str]]:
    """Read the entry of each rubric; returns scores and faults by key. `read` returns a score, or what is wrong."""
    found = {key: read(data.get(key), rubric) for key, rubric in sheet.rubrics.items()}
    scores = {key: each for key, each in found.items() if isinstance(each, Score)}
    return scores, {key: each for key, each in found.items() if isinstance(each, str)}


def read_object(reply: str) -> dict[str, Any]:
    """Read the JSON object that a reply is, at most in one Markdown fence. Raises ValueError: why it is none."""
    fenced = _FENCED.fullmatch(reply)
    try:
        data = json.loads(fenced[1] if fenced else reply, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says one thing twice: nobody knows which it means."""
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return data


def _score(entry: object, rubric: Rubric) -> Score | str:
    """Return the score of one rubric, or what is wrong with it, in words that quote nothing but numbers."""
    if not isinstance(entry, dict):
        return "there is no object with reasoning and score"
    value, reasoning = entry.get("score"), entry.get("reasoning")
    if type(value) is not int:  # True is an int, too
        return f"the score is no whole number but {type(value).__name__}"
    if value not in rubric.levels:
        return f"the score {str(value)[:12]} is not one of the levels {', '.join(map(str, sorted(rubric.levels)))}"
    if not isinstance(reasoning, str):
        return "there is no reasoning"
    return Score(float(value), encodable(reasoning))


def _claims(found: object) -> tuple[str, ...] | None:
    if not isinstance(found, list) or not all(isinstance(claim, str) for claim in found):
        return None
    return tuple(encodable(claim) for claim in found if claim.strip())


def encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and no file in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()


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
        """Return a score per rubric, or why it has none; see `asked`."""
        sheet = self._sheet(rubrics, answered=trial.sample.answer is not None)
        return await self.asked(sheet, prompt(trial), lambda reply: read_verdict(reply, sheet), context)

    async def asked(
        self, sheet: Sheet, asked: str, read: Callable[[str], Verdict], context: JudgeContext
    ) -> dict[str, Score | TrialError]:
        """Return a score per rubric: the first that a reply has for it, or an error after two replies without.

        The second request says what was wrong with the first reply, as the same request would get the same reply. When
        it fails, the scores of the first reply stand.

        Raises:
            TrialError: a request failed, and there is no score.
        """
        message = asked
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
            context.builder.model_called(reply.usage)
            verdict = Verdict.unusable(reply.fault, sheet) if reply.fault else read(reply.text)
            # The first score stands: one must not be rolled again because another could not be read.
            scores = {**_with_refused(verdict.scores, reply.refused), **scores}
            if claims is None and verdict.claims is not None:
                claims = verdict.claims
                context.builder.unverified(claims)
            faults = verdict.faults
            if not faults:
                break
            context.builder.rejected(encodable(reply.text))
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
    return {key: attrs.evolve(score, details={**score.details, "refused": [*refused]}) for key, score in scores.items()}


def _unscored(fault: str, failed: TrialError | None) -> TrialError:
    """Return why a rubric has no score: its fault in the last reply, and the error when another was asked for."""
    if failed is None:
        return TrialError(f"two replies of the judge could not be used: {fault}", stage="score", kind="bad_reply")
    message = f"a reply of the judge could not be used: {fault}; asked once more, it failed: {failed}"
    return TrialError(message, stage="score", kind=failed.kind)
