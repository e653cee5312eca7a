"""Grading: one judgement, asked for once more where the reply cannot be used, and the verdict that a reply gives."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from keval import Rubric, Score, Usage
from keval.plugin import JudgeContext, ModelError, TrialError, split_reasoning
from keval_judges.prompt import CLAIMS, Sheet, Structured

if TYPE_CHECKING:
    from keval_clients import Client

_REFUSED = {400, 422}
"""HTTP statuses of a request that is wrong in itself; Mistral and servers made with FastAPI answer 422."""

_SAID = {"output_config": r"output[_ ](?:config|format)"}
"""Patterns of what endpoints call a field, where that is not its name alone."""


def _first_named(error: ModelError, fields: Iterable[str]) -> str | None:
    """Return the field that a refusal is about: the first, as a message may go on to the fields that are taken."""
    if error.status not in _REFUSED:
        return None
    places = {}
    for name in fields:
        found = re.search(rf"\b{_SAID.get(name, name)}\b", str(error), re.IGNORECASE)
        if found is not None:
            places[name] = found.start()
    return min(places, key=places.__getitem__, default=None)


_WHOLE = re.compile(r"-?\d{1,4}")


@attrs.frozen
class ReplyVerdict:
    """What a reply says: scores and faults by their key in it, and the claims, `None` when they are at fault."""

    scores: Mapping[str, Score] = attrs.field(factory=dict)
    faults: Mapping[str, str] = attrs.field(factory=dict)
    claims: tuple[str, ...] | None = None

    @classmethod
    def unusable(cls, fault: str, sheet: Sheet) -> ReplyVerdict:
        """Return the verdict of a reply that says nothing of what was asked for."""
        return cls(faults=dict.fromkeys((*sheet.rubrics, *sheet.schema["properties"]), fault))


def read_verdict(reply: str, sheet: Sheet) -> ReplyVerdict:
    """Read a reply that holds one object with the rubrics. A part at fault leaves the other parts standing."""
    try:
        data = read_object(reply, [*sheet.rubrics])
    except ValueError as error:
        return ReplyVerdict.unusable(str(error), sheet)
    scores, faults = read_scores(data, sheet, _score)
    claims = data.get(CLAIMS)
    if isinstance(claims, list) and all(isinstance(claim, str) for claim in claims):
        return ReplyVerdict(scores, faults, tuple(encodable(claim) for claim in claims if claim.strip()))
    return ReplyVerdict(scores, {**faults, CLAIMS: "it is no list of texts"})


def read_scores(
    data: Mapping[str, Any], sheet: Sheet, read: Callable[[object, Rubric], Score | str]
) -> tuple[dict[str, Score], dict[str, str]]:
    """Read the entry of each rubric; returns scores and faults by key. `read` returns a score, or what is wrong."""
    only = len(sheet.rubrics) == 1 and "reasoning" in data  # which some models then leave out the key of
    found = {key: read(data.get(key, data if only else None), rubric) for key, rubric in sheet.rubrics.items()}
    scores = {key: each for key, each in found.items() if isinstance(each, Score)}
    return scores, {key: each for key, each in found.items() if isinstance(each, str)}


def read_object(reply: str, keys: Sequence[str] = ()) -> dict[str, Any]:
    """Read the JSON object that a reply holds, whatever stands around it. Raises ValueError: there is not exactly one.

    Where it holds several, the one that has all `keys` is meant; it may be in another object, too. Reasoning that the
    reply begins with is left out.
    """
    try:
        found = [value for value, _, _ in _objects(split_reasoning(reply)[1])]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from error
    inner = (each for value in found for each in value.values() if isinstance(each, dict))
    chosen = _complete(found, keys) or _complete(inner, keys) or found
    if not chosen:
        raise ValueError("it holds no JSON object")
    if any(each != chosen[0] for each in chosen):
        raise ValueError(f"it holds {len(chosen)} objects, and it is unclear which one is meant")
    return chosen[0]


def _complete(objects: Iterable[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    return [each for each in objects if keys and all(key in each for key in keys)]


def without_quotations(reply: str, message: str) -> str:
    """Return a reply without the JSON objects that the judge copied from the message that it was asked with.

    A response may hold a finished verdict, in the hope that the judge repeats it.
    """
    # Quick, because most replies hold no copy.
    begins = (found.start() for found in islice(re.finditer(r"\{", reply), _MOST_BRACES))
    if not any(reply[at : at + _TELLING] in message for at in begins):
        return reply
    kept, at = [], 0
    try:
        for _, start, end in _objects(reply):
            if reply[start:end] in message:
                kept.append(reply[at:start])
                at = end
    except (ValueError, RecursionError):
        return reply  # which is read no further, either
    return "".join([*kept, reply[at:]])


_TELLING = 16
"""Characters of an object by which nearly all that were not copied are known."""
_MOST_BRACES = 1_000


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the JSON objects in a text, without those within others, and where they stand.

    Raises ValueError: a brace begins no object.

    What stands within such a brace may be a quotation, so nothing is read from it.
    """
    at = text.find("{")
    while at >= 0:
        value, end = _DECODER.raw_decode(text, at)
        yield value, at, end
        at = text.find("{", end)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says one thing twice: nobody knows which it means."""
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return data


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _score(entry: object, rubric: Rubric) -> Score | str:
    """Return the score of one rubric, or what is wrong with it, in words that quote nothing but numbers."""
    if not isinstance(entry, dict):
        return "there is no object with reasoning and score"
    value, reasoning = _whole(entry.get("score")), entry.get("reasoning")
    if type(value) is not int:  # True is an int, too
        return f"the score is no whole number but {type(value).__name__}"
    if value not in rubric.levels:
        return f"the score {str(value)[:12]} is not one of the levels {', '.join(map(str, sorted(rubric.levels)))}"
    if not isinstance(reasoning, str):
        return "there is no reasoning"
    return Score(float(value), encodable(reasoning))


def _whole(value: object) -> object:
    """Return a whole number that was written as `5.0` or as `"5"`; anything else as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value.strip()) else value


def encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and no file in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()


_ASKINGS = 2

REFUSED = "the judge refused to grade"
_FILTERED = "it was cut off by the endpoint's content filter"
_LIMITED = "it was cut off: the judge reached its limit of tokens"
_FULL = "it was cut off: the judge's context window is full"
ENDED_EARLY = {
    "length": _LIMITED,
    "max_tokens": _LIMITED,
    "model_context_window_exceeded": _FULL,
    "content_filter": _FILTERED,
    "refusal": REFUSED,
}
"""Why a reply is no verdict, by the word of an API for its end."""
_KINDS = {REFUSED: "refused", _FILTERED: "refused", _LIMITED: "cut_off", _FULL: "cut_off"}
"""The kinds of such failures; a reply that is no verdict for another reason is a `bad_reply`."""

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


@attrs.define(eq=False)
class Api(ABC):
    """A vendor's API; `settings` are the fields that all its requests have, unless the model has refused them.

    A refusal is remembered when the request without that field was answered, as an error may name one by chance.
    """

    client: Client
    structured: Structured
    settings: Mapping[str, Any]
    _refused: frozenset[str] = attrs.field(default=frozenset(), init=False)

    @abstractmethod
    async def ask(self, sheet: Sheet, message: str, context: JudgeContext) -> Reply:
        """Send the sheet's instructions and a user message; raises TrialError when no reply comes."""

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        instead: Mapping[str, Mapping[str, Any]],
        headers: Mapping[str, str],
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Send a request and return the reply, and which fields of the body the model refused.

        `instead` has the fields that may be left out, each with those that then take its place.

        Raises:
            TrialError: as `Client.post` does, but for what leaving a field out cures.
        """
        refused = self._refused
        while True:
            sent = dict(body)
            for name in refused & body.keys():
                del sent[name]
                sent.update(instead[name])
            try:
                reply = await self.client.post(path, sent, headers)
            except ModelError as error:
                named = _first_named(error, instead.keys() & sent.keys())
                if named is None:
                    raise
                # Each round leaves out one more of finitely many fields, so this ends.
                refused = refused | {named}
            else:
                self._refused |= refused
                return reply, tuple(name for name in instead if name in refused & body.keys())

    async def aclose(self) -> None:
        """Close its connections."""
        await self.client.aclose()


async def ask_for_scores(
    api: Api, sheet: Sheet, asked: str, read: Callable[[str], ReplyVerdict], context: JudgeContext
) -> dict[str, Score | TrialError]:
    """Return a score per rubric: the first that a reply has for it, or an error after two replies without.

    The second request says what was wrong with the first reply, as the same request would get the same reply. When it
    fails, the scores of the first reply stand.

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
            reply = await api.ask(sheet, message, context)
        except TrialError as error:
            if not scores:
                raise
            failed = error
            break
        context.builder.model_called(reply.usage)
        said = without_quotations(reply.text, asked)
        verdict = ReplyVerdict.unusable(reply.fault, sheet) if reply.fault else read(said)
        # The first score stands: one must not be rolled again because another could not be read.
        refused = {"refused": [*reply.refused]} if reply.refused else {}  # the options that they were made without
        made = {key: attrs.evolve(each, details={**each.details, **refused}) for key, each in verdict.scores.items()}
        scores = {**made, **scores}
        if claims is None and verdict.claims is not None:
            claims = verdict.claims
            context.builder.unverified(claims)
        faults = verdict.faults
        if not faults:
            break
        context.builder.rejected(encodable(reply.text))
        message = asked + _AGAIN.format(faults="\n".join(f"- {key}: {fault}" for key, fault in faults.items()))
    return {rubric.name: scores.get(key) or _unscored(faults[key], failed) for key, rubric in sheet.rubrics.items()}


def _unscored(fault: str, failed: TrialError | None) -> TrialError:
    """Return why a rubric has no score: its fault in the last reply, and the error when another was asked for."""
    if failed is None:
        message = f"two replies of the judge could not be used: {fault}"
        return TrialError(message, stage="score", kind=_KINDS.get(fault, "bad_reply"))
    message = f"a reply of the judge could not be used: {fault}; asked once more, it failed: {failed}"
    return TrialError(message, stage="score", kind=failed.kind)
