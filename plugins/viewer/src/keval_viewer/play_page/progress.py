"""What columns do just now: the steps to an answer, as the transcript has them or folded from the events of a feed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Any, TypeAlias

import attrs

from keval import ToolCall, Transcript
from keval.seams.live_events import LiveEvent

_BRIEF = 60
"""Characters of a call's arguments that stand in its line."""
_KEPT = 64
"""Trials whose latest doings are kept; one that has ended is shown as it was written."""


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
        """The values of the arguments in a few words, as they stand in a line: `Oulu, 5`."""
        told = " ".join(", ".join(map(str, self.arguments.values())).split())
        return told if len(told) <= _BRIEF else f"{told[: _BRIEF - 1]}…"


@attrs.frozen
class Noted:
    """Something else that happened on the way, such as a request that was refused."""

    text: str


Step: TypeAlias = Said | Called | Noted


def steps_of(transcript: Transcript) -> tuple[Step, ...]:
    """Return the steps to the last answer of a transcript, without the answer itself."""
    calls = iter(transcript.own_calls)
    last = max((message.turn for message in transcript.messages), default=0)
    found: list[Step] = []
    for message in transcript.messages:
        if message.turn == last and message.role == "assistant" and message.text:
            found.append(Said(message.text))
        elif message.turn == last and message.role == "tool":
            found += map(_called, islice(calls, 1))
    if found and transcript.output and found[-1] == Said(transcript.output):
        found.pop()
    # Calls that came to no result have no message.
    return (*found, *map(_called, calls))


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


@attrs.frozen
class Doing:
    """What a trial has come to: the steps so far, and what the agent is writing.

    `began` is when the turn did, as Unix time in seconds.
    """

    steps: tuple[Step, ...] = ()
    writing: str = ""
    began: float | None = None

    def after(self, event: LiveEvent) -> Doing:
        """Return what the trial has come to after an event."""
        data = event.data
        match event.kind:
            case "trial_started":
                return Doing(self._notes)
            case "turn_started":
                return attrs.evolve(self, steps=self._notes, writing="", began=event.at)
            case "model_refused":
                status = f" (status {data['status']})" if data.get("status") else ""
                return self._with(Noted(f"a model request was refused{status}: {data.get('message', '')}"))
            case "text_streamed":
                return attrs.evolve(self, writing=self.writing + str(data["text"]))
            case "said":
                # What was streamed is a part of what was said, or all of it.
                return attrs.evolve(self, steps=(*self.steps, Said(str(data["text"]))), writing="")
            case "tool_called":
                return self._with(Called(str(data["name"]), data.get("arguments") or {}, data.get("id")))
            case "server_called" | "server_returned" | "tool_returned":
                return self._changed(event)
            case "trial_finished" if data.get("failure"):
                return self._with(Noted(f"attempt {event.attempt} failed: {data.get('message') or data['failure']}"))
        return self

    @property
    def _notes(self) -> tuple[Noted, ...]:
        return tuple(step for step in self.steps if isinstance(step, Noted))

    def _with(self, step: Step) -> Doing:
        return attrs.evolve(self, steps=(*self.steps, step))

    def _changed(self, event: LiveEvent) -> Doing:
        """Return this with what an event says of the latest tool call that it can be about."""
        data = event.data
        for index in _candidates(self.steps, event):
            call = self.steps[index]
            if isinstance(call, Called):
                steps = (*self.steps[:index], _evolved(call, event.kind, data), *self.steps[index + 1 :])
                return attrs.evolve(self, steps=steps)
        return self


def _candidates(steps: tuple[Step, ...], event: LiveEvent) -> list[int]:
    """Return the positions of the calls that an event may be about, the likeliest first."""
    data = event.data
    found = [(index, step) for index, step in enumerate(steps) if isinstance(step, Called)]
    if event.kind == "tool_returned":
        open_calls = [(index, call) for index, call in found if not call.is_done]
        same = [index for index, call in open_calls if data.get("id") is not None and call.id == data["id"]]
        return same or [index for index, call in open_calls if call.name == data.get("name")]
    if event.kind == "server_called":
        # A framework may report a call only after its server has got it: then the call's own event comes later.
        waiting = [(index, call) for index, call in found if call.server is None and not call.is_done]
        return [index for index, call in waiting if _is_tool(call.name, str(data["tool"]))]
    return [index for index, call in found if (call.server, call.number) == (data["server"], data["call"])]


def _is_tool(name: str, tool: str) -> bool:
    """Return whether an agent's name of a tool may be of a server's tool: it may have the server's name before it."""
    return name == tool or name.endswith(f"__{tool}")


def _evolved(call: Called, kind: str, data: Mapping[str, Any]) -> Called:
    if kind == "server_called":
        return attrs.evolve(call, server=str(data["server"]), number=data["call"])
    if kind == "server_returned":
        return attrs.evolve(call, seconds=data["duration"])
    seconds = call.seconds if call.seconds is not None else data.get("duration")
    return attrs.evolve(call, result=data.get("result"), error=data.get("error"), seconds=seconds, is_done=True)


@attrs.define(eq=False)
class Progress:
    """What each trial of a play has come to, as its feed tells."""

    _doings: OrderedDict[str, Doing] = attrs.field(factory=OrderedDict, init=False)

    def hear(self, event: LiveEvent) -> None:
        """Take in an event."""
        if event.trial:
            self._doings[event.trial] = self.of(event.trial).after(event)
            while len(self._doings) > _KEPT:
                self._doings.popitem(last=False)

    def of(self, trial: str) -> Doing:
        """Return what a trial has come to."""
        return self._doings.get(trial, Doing())
