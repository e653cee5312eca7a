"""The steps to an answer: what an agent said on the way, and its tool calls, where they ran and how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from keval import ToolCall, Transcript

__all__ = ["Called", "Noted", "Said", "Step", "steps_of", "told_briefly"]

_BRIEF = 60
"""Characters of a call's arguments that stand in its line."""


@attrs.frozen
class Said:
    """What an agent wrote before its answer, or is writing."""

    text: str


@attrs.frozen
class Called:
    """A tool call. `seconds` are those at its server, if a tap watched, else those that the framework took.

    `server` is `None` while no server has got it. `is_done` says that the agent has the result.
    """

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    id: str | None = None
    server: str | None = None
    number: int | None = None
    seconds: float | None = None
    result: str | None = None
    error: str | None = None
    is_done: bool = False

    @property
    def brief(self) -> str:
        """The arguments as they stand in a line."""
        return told_briefly(self.arguments)

    @property
    def took(self) -> str:
        """How long it took, in words; empty while that is unknown."""
        if self.seconds is None:
            return ""
        return f"{self.seconds:.1f} s" if self.seconds >= 0.0995 else f"{self.seconds * 1000:.0f} ms"


@attrs.frozen
class Noted:
    """Something else that happened on the way, such as a request that was refused."""

    text: str


Step: TypeAlias = Said | Called | Noted


def told_briefly(arguments: Mapping[str, Any]) -> str:
    """Return the values of a call's arguments in a few words: `Oulu, 5`."""
    told = ", ".join(str(value) for value in arguments.values())
    one_line = " ".join(told.split())
    return one_line if len(one_line) <= _BRIEF else f"{one_line[: _BRIEF - 1]}…"


def steps_of(transcript: Transcript) -> tuple[Step, ...]:
    """Return the steps to the last answer of a transcript, without the answer itself."""
    calls = iter(transcript.own_calls)
    last = max((message.turn for message in transcript.messages), default=0)
    found: list[Step] = []
    for message in transcript.messages:
        if message.turn == last and message.role == "assistant":
            found.append(Said(message.text))
        elif message.turn == last and message.role == "tool":
            found += [_called(call) for call in _next(calls)]
    if found and transcript.output and found[-1] == Said(transcript.output):
        found.pop()
    # Calls that came to no result have no message.
    return (*found, *map(_called, calls))


def _next(calls: Iterator[ToolCall]) -> Iterator[ToolCall]:
    call = next(calls, None)
    if call is not None:
        yield call


def _called(call: ToolCall) -> Called:
    return Called(
        name=call.name,
        arguments=call.arguments,
        id=call.id,
        server=call.server,
        seconds=call.duration,
        result=call.result,
        error=call.error,
        is_done=call.result is not None or call.error is not None,
    )
