"""One recorded answer: what a line of the file says, checked, and the transcript that it amounts to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import attrs
import orjson

from keval import Message, Sample, ToolCall, Transcript, Usage
from keval.plugin import history_of

_TOKENS = {
    "input_tokens": "input_tokens",
    "prompt_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "completion_tokens": "output_tokens",
    "cached_tokens": "cached_tokens",
    "reasoning_tokens": "reasoning_tokens",
    "prompt_token_count": "input_tokens",
    "candidates_token_count": "output_tokens",
    "cached_content_token_count": "cached_tokens",
    "thoughts_token_count": "reasoning_tokens",
}
"""How records name tokens, and what keval calls them."""

# Spellings that are too different for `get_close_matches` to find what is meant.
_SLIPS = {
    "tool_call_count": "tool_calls",
    "responseTime": "response_time",
    "toolCalls": "tool_calls",
    "conversation_history": "history",
}
_CALL = frozenset({"name", "arguments", "result", "error", "duration", "server", "turn", "id", "type"})
_ROLES = ("system", "user", "assistant", "tool")
_LAST = -1
"""The turn of a call that says none: the last of its sample."""
_LONGEST = 1e9
"""Seconds; thirty years."""


@attrs.frozen
class RecordedAnswer:
    """An answer to the sample `id`; `error` says why there is none.

    `tool_calls` are all there were, or their number in the answered turn, or `None` where nobody counted. `history` and
    `facts` are those that the agent had of its own; `None` where they are the sample's. `messages` are all that passed,
    if that is known; `scores` is what others say of the answer, by name.
    """

    id: str
    condition: str | None = None
    response: str = ""
    error: str | None = None
    response_time: float | None = None
    tool_calls: tuple[ToolCall, ...] | int | None = None
    model_calls: int | None = None
    usage: Usage = attrs.field(factory=Usage)
    history: tuple[Message, ...] | None = None
    facts: Mapping[str, Any] | None = None
    truncated: bool = False
    messages: tuple[Message, ...] = ()
    scores: Mapping[str, Any] = attrs.field(factory=dict)

    def transcript(self, sample: Sample) -> Transcript:
        """What is known of how the sample was answered. Raises ValueError: a call is of a turn that there is not."""
        last = len(sample.turns)
        listed = self.tool_calls if isinstance(self.tool_calls, tuple) else ()
        calls = tuple(attrs.evolve(call, turn=last) if call.turn == _LAST else call for call in listed)
        for call in calls:
            if call.turn > last:
                raise ValueError(f"a call of {call.name!r} is of turn {call.turn}, and the last turn is {last}")
        asked = (Message("user", text, turn) for turn, text in enumerate(sample.asked))
        returned = (Message("tool", call.result or call.error or "", call.turn) for call in calls)
        passed = self.messages or tuple(sorted((*asked, *returned), key=lambda message: message.turn))
        said = Transcript(messages=passed).output
        spoken = [Message("assistant", self.response, last)] if self.response and self.response != said else []
        return Transcript(
            messages=(*passed, *spoken),
            tool_calls=calls,
            usage=self.usage,
            model_calls=self.model_calls,
            duration=None if sample.turns else self.response_time,
            turn_durations=() if self.response_time is None else (self.response_time,),
            unlisted_calls=0 if isinstance(self.tool_calls, tuple) else self.tool_calls,
            history=None if self.history == sample.history else self.history,
            facts=self._own_facts(sample) or None,
            truncated=self.truncated,
            scores=self.scores,
        )

    def _own_facts(self, sample: Sample) -> Mapping[str, Any]:
        return {name: fact for name, fact in (self.facts or {}).items() if sample.facts.get(name, ...) != fact}


def read_answer(record: Any) -> RecordedAnswer:
    """Read a record. Raises ValueError saying what is wrong with it."""
    if not isinstance(record, dict):
        raise ValueError("expected an object with id and response")
    _refuse_misspelt(record, _READ, "")
    given: dict[str, Any] = {key: read(record[key], key) for key, read in _READ.items() if record.get(key) is not None}
    if "id" not in given:
        raise ValueError("no id; give the id of the sample that is answered")
    if given.get("error") is None:
        given.pop("error", None)
    if ("response" in given) == ("error" in given):
        both = "both response and error" if "error" in given else "neither response nor error"
        raise ValueError(f"{both}; give the answer's text, or say why there is none")
    return RecordedAnswer(**given)


def _refuse_misspelt(record: Mapping[str, Any], keys: Collection[str], place: str) -> None:
    """Refuse a key that looks like one that is missing; other keys are the record's own business."""
    for key in record:
        if key in keys:
            continue
        missing = [name for name in keys if name not in record]
        # A high bar, as records may have keys of their own that only resemble keval's.
        meant = _SLIPS.get(key) or next(iter(get_close_matches(key, missing, 1, cutoff=0.92)), None)
        if meant in missing:
            raise ValueError(f"unknown key {f'{place}{key}'!r}; did you mean {meant!r}?")


def _id(value: Any, key: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{key!r} is a text or a whole number, got {value!r:.60}")
    return str(value)


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is a text, got {value!r:.60}")
    return value


def _error(value: Any, key: str) -> str | None:
    """Read an error; logs write an empty one, or false, where there was none."""
    if not value:
        return None
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _flag(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{key!r} is true or false, got {value!r:.60}")
    return value


def _count(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key!r} is a whole number from 0, got {value!r:.60}")
    return value


def _seconds(value: Any, key: str, unit: str = "seconds") -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LONGEST:
        raise ValueError(f"{key!r} is a number of {unit}, got {value!r:.60}")
    return float(value)


def _usage(value: Any, key: str) -> Usage:
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} is an object such as {{input_tokens: 120, output_tokens: 30}}, got {value!r:.60}")
    _refuse_misspelt(value, _TOKENS, f"{key}.")
    found: dict[str, Any] = {}
    for name, count in value.items():
        if name in _TOKENS and count is not None:
            number = _count(count, f"{key}.{name}")
            if found.setdefault(_TOKENS[name], number) != number:
                raise ValueError(f"{key!r} says {_TOKENS[name]} twice: {found[_TOKENS[name]]} and {number}")
    if value.get("cost") is not None:
        found["cost"] = _seconds(value["cost"], f"{key}.cost", "US dollars")
    return Usage(**found)


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
    if unknown := item.keys() - _CALL:
        problem = f"unknown key {f'{place}.{min(unknown)}'!r}; a call has {', '.join(sorted(_CALL))}"
        raise ValueError(problem)
    yield "name", item["name"]
    yield "turn", _LAST if item.get("turn") is None else _count(item["turn"], f"{place}.turn")
    arguments = item.get("arguments")
    if arguments is not None:
        yield "arguments", _arguments(arguments, f"{place}.arguments")
    if (said := item.get("result")) is not None:
        yield "result", said if isinstance(said, str) else orjson.dumps(said).decode()
    yield "error", _error(item.get("error"), "error")
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


def _history(value: Any, key: str) -> tuple[Message, ...]:
    return history_of(value)


def _messages(value: Any, key: str) -> tuple[Message, ...]:
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict) or not isinstance(item.get("content"), str) or item.get("role") not in _ROLES:
            raise ValueError(f"{key!r} is a list of {{role, content}}, got {item!r:.60}; roles: {', '.join(_ROLES)}")
    return tuple(Message(each["role"], each["content"], reasoning=each.get("reasoning") or "") for each in value)


def _scores(value: Any, key: str) -> Mapping[str, Any]:
    for name, told in _facts(value, key).items():
        score = told.get("value") if isinstance(told, dict) else told
        if not isinstance(score, int | float | None):
            raise ValueError(f"{f'{key}.{name}'!r} is a number, or {{value, reason}}, got {told!r:.60}")
    return _facts(value, key)


def _facts(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} is an object with named values, got {value!r:.60}")
    return value


_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "id": _id,
    "condition": _text,
    "response": _text,
    "error": _error,
    "response_time": _seconds,
    "tool_calls": _calls,
    "model_calls": _count,
    "usage": _usage,
    "history": _history,
    "facts": _facts,
    "truncated": _flag,
    "messages": _messages,
    "scores": _scores,
}
"""What a record may have, and what reads it."""
