"""Records as lines of JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import attrs
import cattrs
import orjson

from keval.records import Attempt, Characteristics, Failure, Message, Sample, Score, ScoreLine, Transcript, Trial

__all__ = ["dump", "read_sample", "read_score", "read_trial", "sample_line", "score_line", "trial_line"]


_DEEPEST = 200
"""orjson goes 254 levels deep; arguments that a model makes up may go further."""


def dump(data: Any) -> bytes:
    """Write plain data as one line of JSON. A lone surrogate, which no UTF-8 file can hold, becomes `?`."""
    options = orjson.OPT_NON_STR_KEYS
    try:
        return orjson.dumps(data, option=options, default=_plain)
    except orjson.JSONEncodeError:
        return orjson.dumps(_encodable(data), option=options, default=_plain)


def sample_line(sample: Sample) -> bytes:
    return dump(_converter().unstructure(sample))


def read_sample(line: bytes) -> Sample:
    return _converter().structure(orjson.loads(line), Sample)


def trial_line(trial: Trial) -> bytes:
    """A trial without what the run keeps elsewhere: its sample by id, its agent's characteristics not at all."""
    converter = _converter()
    return dump(
        {
            "id": trial.id,
            "sample": trial.sample.id,
            "agent": trial.agent,
            "model": trial.model,
            "condition": trial.condition,
            "repetition": trial.repetition,
            "output": trial.output,
            "transcript": converter.unstructure(trial.transcript, Transcript | None),
            "failure": converter.unstructure(trial.failure, Failure | None),
            "attempts": [converter.unstructure(attempt) for attempt in trial.attempts],
        }
    )


def read_trial(
    line: bytes, samples: Mapping[str, Sample], characteristics: Mapping[str, Characteristics | None]
) -> Trial:
    """Read a line of trials.jsonl. Raises KeyError, ValueError or a cattrs error when it is none."""
    data = orjson.loads(line)
    converter = _converter()
    return Trial(
        id=data["id"],
        sample=samples[data["sample"]],
        agent=data["agent"],
        condition=data["condition"],
        repetition=data["repetition"],
        transcript=converter.structure(data["transcript"], Transcript | None),  # type: ignore[arg-type]
        failure=converter.structure(data["failure"], Failure | None),  # type: ignore[arg-type]
        attempts=tuple(converter.structure(item, Attempt) for item in data["attempts"]),
        characteristics=characteristics.get(data["agent"]),
        model=data["model"],
    )


def score_line(line: ScoreLine) -> bytes:
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
            "failure": _converter().unstructure(line.failure, Failure | None),
        }
    )


def read_score(line: bytes) -> ScoreLine:
    data = orjson.loads(line)
    return ScoreLine(
        trial=data["trial"],
        sample=data["sample"],
        agent=data["agent"],
        condition=data["condition"],
        repetition=data["repetition"],
        metric=data["metric"],
        judge=data["judge"],
        score=Score(data["value"], data["reason"], data["neutral"], data["details"]),
        failure=_converter().structure(data["failure"], Failure | None),  # type: ignore[arg-type]
    )


@cache
def _converter() -> cattrs.Converter:
    # What is read was written by keval, so types are not checked again, which halves the time.
    converter = cattrs.Converter(detailed_validation=False)
    for kept in (str, int, float):
        converter.register_structure_hook(kept, lambda value, _: value)
    converter.register_structure_hook_func(
        lambda wanted: getattr(wanted, "__origin__", None) is Mapping, lambda value, _: value
    )
    converter.register_unstructure_hook(Message, lambda m: {"role": m.role, "text": m.text, "turn": m.turn})
    return converter


def _plain(value: Any) -> Any:
    """What an adapter or metric put into a record, as JSON can hold it."""
    if attrs.has(type(value)):
        return _converter().unstructure(value)
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
