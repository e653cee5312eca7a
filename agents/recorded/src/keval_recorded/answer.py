"""One recorded answer: what a line of the file says, checked, and the transcript that it amounts to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import attrs
import orjson

from keval import Message, Sample, ToolCall, Transcript, Usage

__all__ = ["Answer", "read_answer"]

_TOKENS = {
    "input_tokens": "input_tokens",
    "prompt_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "completion_tokens": "output_tokens",
    "cached_tokens": "cached_tokens",
    "reasoning_tokens": "reasoning_tokens",
}
"""How records name tokens, and what keval calls them."""


@attrs.frozen
class Answer:
    """An answer to the sample `id`; `error` says why there is none.

    `tool_calls` are those of the answered turn, in full, as a number, or `None` where nobody counted.
    """

    id: str
    condition: str | None = None
    response: str = ""
    error: str | None = None
    response_time: float | None = None
    tool_calls: tuple[ToolCall, ...] | int | None = None
    model_calls: int | None = None
    usage: Usage = attrs.field(factory=Usage)

    def transcript(self, sample: Sample) -> Transcript:
        """What is known of how the sample's last message was answered."""
        last = len(sample.turns)
        listed = self.tool_calls if isinstance(self.tool_calls, tuple) else ()
        calls = tuple(attrs.evolve(call, turn=last) for call in listed)
        asked = (Message("user", text, turn) for turn, text in enumerate(sample.asked))
        returned = (Message("tool", call.result or call.error or "", last) for call in calls)
        spoken = [Message("assistant", self.response, last)] if self.response else []
        return Transcript(
            messages=(*asked, *returned, *spoken),
            tool_calls=calls,
            usage=self.usage,
            model_calls=self.model_calls,
            duration=None if sample.turns else self.response_time,
            turn_durations=() if self.response_time is None else (self.response_time,),
            unlisted_calls=0 if isinstance(self.tool_calls, tuple) else self.tool_calls,
        )


def read_answer(record: Any) -> Answer:
    """Read a record. Raises ValueError saying what is wrong with it."""
    if not isinstance(record, dict):
        raise ValueError("expected an object with id and response")
    for key in record.keys() - _READ.keys():
        if near := get_close_matches(key, _READ, 1, cutoff=0.75):
            raise ValueError(f"unknown key {key!r}; did you mean {near[0]!r}?")
    given: dict[str, Any] = {key: read(record[key], key) for key, read in _READ.items() if record.get(key) is not None}
    if "id" not in given:
        raise ValueError("no id; give the id of the sample that is answered")
    if "response" not in given and "error" not in given:
        raise ValueError("neither response nor error; give the answer's text, or say why there is none")
    return Answer(**given)


def _id(value: Any, key: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{key!r} is a text or a whole number, got {value!r:.60}")
    return str(value)


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is a text, got {value!r:.60}")
    return value


def _count(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key!r} is a number of 0 or more, got {value!r:.60}")
    return value


def _seconds(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{key!r} is a number of seconds, got {value!r:.60}")
    return float(value)


def _usage(value: Any, key: str) -> Usage:
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} is an object such as {{input_tokens: 120, output_tokens: 30}}, got {value!r:.60}")
    known = ((name, count) for name, count in value.items() if name in _TOKENS and count is not None)
    return Usage(**{_TOKENS[name]: _count(count, f"{key}.{name}") for name, count in known})


def _calls(value: Any, key: str) -> tuple[ToolCall, ...] | int:
    if isinstance(value, list):
        return tuple(ToolCall(**dict(_call(item, f"{key}[{index}]"))) for index, item in enumerate(value))
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key!r} is a list of calls, or their number, got {value!r:.60}")
    return value


def _call(item: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise ValueError(f"{place!r} is an object with the name of a tool, got {item!r:.60}")
    yield "name", item["name"]
    arguments = item.get("arguments")
    if arguments is not None:
        yield "arguments", _arguments(arguments, f"{place}.arguments")
    for name in ("result", "error"):
        if (said := item.get(name)) is not None:
            yield name, said if isinstance(said, str) else orjson.dumps(said).decode()
    if item.get("duration") is not None:
        yield "duration", _seconds(item["duration"], f"{place}.duration")
    if item.get("server") is not None:
        yield "server", _text(item["server"], f"{place}.server")


def _arguments(value: Any, key: str) -> Mapping[str, Any]:
    # Model APIs hand arguments over as JSON in a text, and so logs have them.
    if isinstance(value, str):
        try:
            value = orjson.loads(value or "{}")
        except orjson.JSONDecodeError:
            raise ValueError(f"{key!r} is an object, or one written as JSON, got {value!r:.60}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} is an object, got {value!r:.60}")
    return value


_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "id": _id,
    "condition": _text,
    "response": _text,
    "error": _text,
    "response_time": _seconds,
    "tool_calls": _calls,
    "model_calls": _count,
    "usage": _usage,
}
"""What a record may have, and what reads it; other keys are the record's own business."""
