"""Records as lines of JSON, and back, with the types that summaries and tables count on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
import orjson

from keval.records.sample import Expectation, Sample
from keval.records.scores import Judgement, Score, ScoreLine
from keval.records.traffic import Content, ServerExchange
from keval.records.transcript import Message, Refusal, ToolCall, Transcript, Usage
from keval.records.trial import Attempt, Failure, Trial

T = TypeVar("T")

_FREE = frozenset({"result", "error", "reason", "message", "traceback"})
"""Fields that are only shown, and in which an adapter may have left something else than a text."""


class _Shape(NamedTuple):
    name: str
    types: tuple[type, ...]
    items: tuple[type, ...]


def fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name, with their values as they are."""
    return {name: getattr(record, name) for name in _names(record.__class__)}


def read_record(kind: Callable[..., T], data: Mapping[str, Any]) -> T:
    """Make a record of its fields; unknown ones are left out.

    Raises TypeError: a field is lacking or has a wrong type.
    """
    try:
        return shaped(kind(**data))
    except TypeError:  # unknown keys are rare, so they are looked for only after an error
        known = {name: value for name, value in data.items() if name in _names(kind)}
        if len(known) == len(data):
            raise
        return shaped(kind(**known))


def shaped(record: T) -> T:
    """Return the record. Raises TypeError: one of its fields, or an item in it, has another type than it should."""
    kind: Any = record.__class__
    for name, types, items in _shapes(kind):
        value: Any = getattr(record, name)
        if not isinstance(value, types):
            raise TypeError(f"{name!r} has the value {value!r:.60}")
        if items and isinstance(value, tuple | list):
            for item in value:
                if not isinstance(item, items):
                    raise TypeError(f"{name!r} holds {item!r:.60}")
    return record


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind))


@cache
def _shapes(kind: Any) -> tuple[_Shape, ...]:
    hints = get_type_hints(kind)
    names = [field.name for field in attrs.fields(kind) if field.name not in _FREE]
    shapes = (_Shape(name, _types(hints[name]), _items(hints[name])) for name in names)
    return tuple(shape for shape in shapes if object not in shape.types)


def _types(hint: Any) -> tuple[type, ...]:
    origin = get_origin(hint)
    if hint is Any:
        return (object,)
    if origin in {Union, UnionType}:
        return tuple(kind for part in get_args(hint) for kind in _types(part))
    if origin is Literal:
        return (str,)
    if origin is not None:
        return (Mapping,) if issubclass(origin, Mapping) else (tuple, list)
    if hint in {int, float}:
        return (int, float)
    return (hint,) if isinstance(hint, type) else (object,)


def _items(hint: Any) -> tuple[type, ...]:
    """Return the types of a list's items, as far as they are plain; records are checked when they are read."""
    if get_origin(hint) in {Union, UnionType}:
        return tuple(kind for part in get_args(hint) for kind in _items(part))
    origin = get_origin(hint)
    if not isinstance(origin, type) or not issubclass(origin, Sequence):
        return ()
    first = get_args(hint)[0]
    return _types(first) if first in {str, int, float} else ()


_DEEPEST = 200
"""orjson writes 254 levels; arguments that a model makes up may have more."""


def dump(data: Any) -> bytes:
    """Write plain data as one line of JSON. A lone surrogate, which UTF-8 cannot encode, becomes `?`."""
    options = orjson.OPT_NON_STR_KEYS
    try:
        return orjson.dumps(data, option=options, default=_plain)
    except orjson.JSONEncodeError:
        return orjson.dumps(_encodable(data), option=options, default=_plain)


def sample_line(sample: Sample) -> bytes:
    """Write a sample."""
    parts = {name: [fields_of(part) for part in getattr(sample, name)] for name in ("history", "expect")}
    return dump({**fields_of(sample), **parts})


def read_sample(line: bytes) -> Sample:
    """Read a line of samples.jsonl. Raises LookupError, TypeError or ValueError."""
    data = orjson.loads(line)
    earlier = tuple(read_record(Message, message) for message in data.pop("history", ()))
    turns, withheld = tuple(data.pop("turns", ())), tuple(data.pop("withheld", ()))
    expect = tuple(_read_expectation(part) for part in data.pop("expect", ()))
    return read_record(Sample, {**data, "history": earlier, "turns": turns, "withheld": withheld, "expect": expect})


def trial_line(trial: Trial) -> bytes:
    """Write a trial, without its sample's content and its agent's characteristics, which the run keeps elsewhere."""
    return dump(
        {
            "id": trial.id,
            "sample": trial.sample.id,
            "agent": trial.agent,
            "model": trial.model,
            "condition": trial.condition,
            "repetition": trial.repetition,
            "output": trial.output,
            "transcript": _transcript(trial.transcript),
            "failure": trial.failure and fields_of(trial.failure),
            "complied": trial.complied,
            "attempts": [
                {
                    "failure": fields_of(attempt.failure),
                    "transcript": _transcript(attempt.transcript),
                    "counted": attempt.counted,
                }
                for attempt in trial.attempts
            ],
        }
    )


def read_trial(
    line: bytes, sample: Callable[[str], Sample], characteristics: Callable[[str], Mapping[str, Any]]
) -> Trial:
    """Read a line of trials.jsonl. Raises LookupError, TypeError or ValueError.

    `sample` returns a sample by its id, and `characteristics` those of an agent by its label.
    """
    data = orjson.loads(line)
    trial = Trial(
        id=data["id"],
        sample=sample(data["sample"]),
        agent=data["agent"],
        condition=data["condition"],
        repetition=data["repetition"],
        transcript=_read_transcript(data.get("transcript")),
        failure=_read_failure(data.get("failure")),
        attempts=tuple(
            Attempt(
                read_record(Failure, attempt["failure"]),
                _read_transcript(attempt.get("transcript")),
                attempt.get("counted", True),
            )
            for attempt in data.get("attempts", ())
        ),
        complied=data.get("complied"),
        characteristics=characteristics(data["agent"]),
        model=data.get("model"),
    )
    return shaped(trial)


def score_line(line: ScoreLine) -> bytes:
    """Write a score."""
    return dump(
        {
            "trial": line.trial,
            "sample": line.sample,
            "agent": line.agent,
            "condition": line.condition,
            "repetition": line.repetition,
            "metric": line.metric,
            "judge": line.judge,
            "value": line.score.value,
            "neutral": line.score.neutral,
            "reason": line.score.reason,
            "details": line.score.details,
            "failure": line.failure and fields_of(line.failure),
            "judgement": line.judgement and _judgement(line.judgement),
            "digest": line.digest,
        }
    )


def read_score(line: bytes) -> ScoreLine:
    """Read a line of scores.jsonl. Raises LookupError, TypeError or ValueError."""
    data = orjson.loads(line)
    scored = ScoreLine(
        trial=data["trial"],
        sample=data["sample"],
        agent=data["agent"],
        condition=data["condition"],
        repetition=data["repetition"],
        metric=data["metric"],
        judge=data.get("judge"),
        score=shaped(Score(data["value"], data.get("reason", ""), data.get("neutral", False), data.get("details", {}))),
        failure=_read_failure(data.get("failure")),
        judgement=_read_judgement(data.get("judgement")),
        digest=data.get("digest", ""),
    )
    return shaped(scored)


def _judgement(judgement: Judgement) -> dict[str, Any]:
    attempts = [fields_of(failure) for failure in judgement.attempts]
    return {**fields_of(judgement), "usage": fields_of(judgement.usage), "attempts": attempts}


def _read_judgement(data: dict[str, Any] | None) -> Judgement | None:
    if data is None:
        return None
    claims = data.get("unverified_claims")
    judgement = Judgement(
        repetition=data["repetition"],
        unverified_claims=None if claims is None else tuple(claims),
        model_calls=data.get("model_calls"),
        usage=read_record(Usage, data.get("usage", {})),
        rejected=tuple(data.get("rejected", ())),
        attempts=tuple(read_record(Failure, failure) for failure in data.get("attempts", ())),
        refusals=data.get("refusals", 0),
    )
    return shaped(judgement)


def _transcript(transcript: Transcript | None) -> dict[str, Any] | None:
    if transcript is None:
        return None
    return {
        **fields_of(transcript),
        "messages": [fields_of(message) for message in transcript.messages],
        "tool_calls": [
            {**fields_of(call), "content": [fields_of(piece) for piece in call.content]}
            for call in transcript.tool_calls
        ],
        "exchanges": [fields_of(exchange) for exchange in transcript.exchanges],
        "refusals": [fields_of(refusal) for refusal in transcript.refusals],
        "usage": fields_of(transcript.usage),
    }


def _read_transcript(data: dict[str, Any] | None) -> Transcript | None:
    if data is None:
        return None
    tools = data.pop("tools", None)
    parts = {
        "messages": tuple(read_record(Message, message) for message in data.pop("messages", ())),
        "tool_calls": tuple(map(_read_call, data.pop("tool_calls", ()))),
        "exchanges": tuple(read_record(ServerExchange, exchange) for exchange in data.pop("exchanges", ())),
        "refusals": tuple(read_record(Refusal, refusal) for refusal in data.pop("refusals", ())),
        "usage": read_record(Usage, data.pop("usage", {})),
        "turn_durations": tuple(data.pop("turn_durations", ())),
        "replies": tuple(data.pop("replies", ())),
        "tools": None if tools is None else tuple(tools),
    }
    return read_record(Transcript, {**data, **parts})


def _read_call(data: dict[str, Any]) -> ToolCall:
    fields = {**data}  # a TypeError, if it is no mapping
    content = tuple(read_record(Content, piece) for piece in fields.pop("content", ()))
    return read_record(ToolCall, {**fields, "content": content, "dropped": tuple(fields.get("dropped", ()))})


def _read_expectation(data: dict[str, Any]) -> Expectation:
    lists = {**data}.items()  # a TypeError, if it is no mapping
    return read_record(Expectation, {name: tuple(part) if isinstance(part, list) else part for name, part in lists})


def _read_failure(data: dict[str, Any] | None) -> Failure | None:
    return None if data is None else read_record(Failure, data)


def _plain(value: Any) -> Any:
    """Return a JSON value for a value of another type that an adapter or metric put into a record."""
    if attrs.has(type(value)):
        return attrs.asdict(value)
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)


def _encodable(data: Any, depth: int = 0) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "replace").decode("utf-8")
    if depth > _DEEPEST:
        return "[nested too deeply to be kept]"
    if isinstance(data, Mapping):
        return {_encodable(key): _encodable(value, depth + 1) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_encodable(item, depth + 1) for item in data]
    if isinstance(data, int) and not -(2**63) <= data < 2**64:
        return str(data)
    return data
