"""A trial's conversation as one list of messages, with the tool calls where they were made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from keval import Message, ToolCall, Trial
from keval_eee.text import as_text

__all__ = ["conversation"]


def conversation(trial: Trial) -> list[dict[str, Any]]:
    """Return everything that was said and asked of tools: the system prompt first, then the sample's history."""
    prompt = trial.transcript.instructions if trial.transcript else None
    said = [{"role": "system", "content": prompt}] if prompt else []
    said += [_text(message) for message in trial.sample.history]
    if trial.transcript is not None:
        messages = trial.transcript.messages
        calls = [_Call(call.id or f"call-{n}", call) for n, call in enumerate(trial.transcript.tool_calls, start=1)]
        for turn in sorted({*(message.turn for message in messages), *(item.call.turn for item in calls)}):
            spoken = [message for message in messages if message.turn == turn]
            said += _Turn([item for item in calls if item.call.turn == turn]).said(spoken)
    return [{"turn_idx": index, **message} for index, message in enumerate(said)]


@attrs.frozen(eq=False)
class _Call:
    id: str
    call: ToolCall

    @property
    def came_back(self) -> bool:
        return self.call.result is not None or self.call.error is not None

    @property
    def content(self) -> str | None:
        return self.call.error if self.call.result is None else self.call.result


@attrs.define
class _Turn:
    """Puts the calls of a turn among its messages.

    A transcript has a message where a call came back, which does not say which call it was. It marks the place; the
    content is that of the next call, as it came back where it ran.
    """

    _open: list[_Call]
    _said: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    _asked: list[_Call] = attrs.field(factory=list, init=False)

    def said(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        for message in messages:
            if message.role == "tool" and self._open:
                self._answer(next((item for item in self._open if item.came_back), self._open[0]))
                continue
            if message is messages[-1]:  # what the turn ends on was said after all its calls
                self._close()
            self._said.append(_text(message))
        self._close()
        return self._said

    def _answer(self, item: _Call) -> None:
        self._ask(item)
        self._open.remove(item)
        self._said.append({"role": "tool", "content": item.content, "tool_call_id": [item.id]})

    def _ask(self, item: _Call) -> None:
        """Let the model ask for a call, and in the same breath for all that it asked for with it."""
        if item in self._asked:
            return
        with_it = [
            other
            for other in self._open
            if other is item or (item.call.model_call is not None and other.call.model_call == item.call.model_call)
        ]
        self._asked += with_it
        self._said.append({"role": "assistant", "content": None, "tool_calls": [*map(_asked_for, with_it)]})

    def _close(self) -> None:
        """Tell of the calls that no message marks: they never came back, or the adapter did not say when."""
        for item in [*self._open]:
            if item.came_back:
                self._answer(item)
            else:
                self._ask(item)
                self._open.remove(item)


def _asked_for(item: _Call) -> dict[str, Any]:
    arguments = {str(name): as_text(value) for name, value in item.call.arguments.items()}
    return {"id": item.id, "name": item.call.name, "arguments": arguments}


def _text(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.text}
