"""The recorder: an adapter tells it what happens, and it becomes the transcript."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from keval.records import Message, ToolCall, Transcript, Usage

__all__ = ["Recorder"]


@attrs.define
class Recorder:
    """Collects one trial's transcript while it happens.

    An adapter opens `turn` for each message of the user and reports inside it. Whatever was reported is kept when the
    trial fails or is cancelled. `clock` returns seconds and is only compared with itself.
    """

    _clock: Callable[[], float] = time.perf_counter
    _messages: list[Message] = attrs.field(factory=list, init=False)
    _calls: list[ToolCall] = attrs.field(factory=list, init=False)
    _started: dict[int, float] = attrs.field(factory=dict, init=False)
    _usage: Usage = attrs.field(factory=Usage, init=False)
    _model_calls: int | None = attrs.field(default=None, init=False)
    _durations: list[float] = attrs.field(factory=list, init=False)
    _tools: tuple[str, ...] | None = attrs.field(default=None, init=False)
    _turn: int = attrs.field(default=-1, init=False)

    @contextmanager
    def turn(self, text: str) -> Iterator[None]:
        """Time one turn of the conversation, which the user's `text` opens."""
        self._turn += 1
        self._messages.append(Message("user", text, self._turn))
        began = self._clock()
        try:
            yield
        finally:
            self._durations.append(self._clock() - began)

    def said(self, text: str) -> None:
        """The agent wrote `text`; the last of a turn is its answer. Empty text is not kept."""
        if text:
            self._messages.append(Message("assistant", text, max(self._turn, 0)))

    def called(self, name: str, arguments: Mapping[str, Any], id: str | None = None) -> None:
        """The model asked for a tool, in its latest call; report that with `model_called` first."""
        self._started[len(self._calls)] = self._clock()
        self._calls.append(ToolCall(name, arguments, id=id, turn=max(self._turn, 0), model_call=self._model_calls))

    def returned(
        self,
        result: str | None = None,
        *,
        error: str | None = None,
        id: str | None = None,
        name: str | None = None,
        sent: bool = True,
    ) -> None:
        """A tool call came back, with a result or an error; it is found by `id`, else by `name`, oldest first.

        With `sent` off the framework answered it itself, and no server ran it.
        """
        for index, call in enumerate(self._calls):
            if index in self._started and (call.id == id if id is not None else name in (None, call.name)):
                took = self._clock() - self._started.pop(index)
                runs = None if sent else 0
                self._calls[index] = attrs.evolve(call, result=result, error=error, duration=took, runs=runs)
                self._messages.append(Message("tool", (error if result is None else result) or "", call.turn))
                return
        raise ValueError(f"no open tool call has id {id!r} or name {name!r}")

    def model_called(self, usage: Usage | None = None) -> None:
        """One request to the model was answered."""
        self._model_calls = (self._model_calls or 0) + 1
        if usage is not None:
            self._usage = self._usage + usage

    def offered(self, tools: Iterable[str]) -> None:
        """The model is being asked with these tools; the latest report stands."""
        self._tools = tuple(sorted(tools))

    def transcript(self) -> Transcript:
        """Return what was reported so far."""
        return Transcript(
            messages=tuple(self._messages),
            tool_calls=tuple(self._calls),
            usage=self._usage,
            model_calls=self._model_calls,
            duration=sum(self._durations) if self._durations else None,
            turn_durations=tuple(self._durations),
            tools=self._tools,
        )
