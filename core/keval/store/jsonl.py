"""Records as lines of JSON, and back.

A line may come from a newer or an older version of keval. Unknown keys are ignored, as the line itself is never
written again, and absent keys take their default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
import orjson

from keval.records import Attempt, Expectation, Failure, Message, Refusal, Sample, ToolCall, Transcript, Trial, Usage
from keval.scores import Judgement, Score, ScoreLine
from keval.store.shapes import fields_of, read_record, shaped
from keval.traffic import Content, ServerExchange

__all__ = ["dump", "read_sample", "read_score", "read_trial", "sample_line", "score_line", "trial_line"]

T = TypeVar("T")

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
