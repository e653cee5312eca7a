"""Reports what Claude Code says of a trial to the builder, each thing once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from claude_agent_sdk import (
    AssistantMessage,
    ContentBlock,
    StreamEvent,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from keval import Usage
from keval.plugin import ContentKind, TranscriptBuilder, TrialError, read_usage
from keval_claude_code.servers import Servers

_REFUSED = "<tool_use_error>"
"""How the result of a call begins that Claude Code answered itself, other than for want of a permission."""

_SAVED = re.compile(r"\[(?P<what>Audio|Resource) from .*\] Binary content \(")
"""How a text begins that stands for a sound or a file in a result."""

_NOTHING = Usage(0, 0, 0, 0)

_LIMITS = ("max_tokens", "model_context_window_exceeded")
"""The values of `stop_reason` by which a limit of length ended a message."""

_STAND_IN = "<synthetic>"
"""The model that a message names when Claude Code wrote it in the model's place."""


@attrs.define
class Watch:
    """Follows one trial.

    A message of the model arrives as events of its stream, and each of its blocks once more when it is complete. A call
    may be answered before the message it stands in has ended, and only the end tells how many tokens it took.
    """

    builder: TranscriptBuilder
    servers: Servers
    streams: bool = False
    stand_in: AssistantMessage | None = attrs.field(default=None, init=False)
    _texts: list[str] = attrs.field(factory=list, init=False)
    _usage: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    _counted: Usage | None = attrs.field(default=None, init=False)
    _owed: Usage = attrs.field(default=_NOTHING, init=False)
    _open: dict[str, str] = attrs.field(factory=dict, init=False)
    _is_open: bool = attrs.field(default=False, init=False)
    _truncated: bool = attrs.field(default=False, init=False)

    def see(self, message: object) -> None:
        """Report one message.

        Raises:
            ServerLostError: a tool call lost its server.
            TrialError: the message before this one broke off.
        """
        match message:
            case StreamEvent(event={"type": "message_start", "message": begun}):
                self.check_ended()
                self._is_open = True
                usage = begun.get("usage")
                self._texts, self._counted, self._usage = [], None, usage if isinstance(usage, dict) else {}
                self._truncated = False
                self.stand_in = None
            case StreamEvent(event={"type": "content_block_start", "content_block": {"type": "text"}}) if self._texts:
                self._streamed("\n")
            case StreamEvent(event={"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}):
                self._streamed(text)
            case StreamEvent(event={"type": "message_delta", "usage": dict(usage)} as event):
                self._usage = {**self._usage, **usage}
                self._truncated |= (event.get("delta") or {}).get("stop_reason") in _LIMITS
            case StreamEvent(event={"type": "message_stop"}):
                self._end_message()
            case AssistantMessage(model=model, error=error) if error is not None or model == _STAND_IN:
                self.stand_in = message
            case AssistantMessage(content=content):
                for block in content:
                    self._said(block)
            case UserMessage(content=list(content), tool_use_result=original):
                for block in content:
                    if isinstance(block, ToolResultBlock):
                        self._returned(block, original)

    def check_ended(self) -> None:
        """Raise TrialError if the latest message of the model broke off: Claude Code takes what came for all of it."""
        if self._is_open:
            told = "the model's reply ended in the middle"
            raise TrialError(told, stage="model", kind="bad_reply", retryable=True)

    def end_turn(self) -> None:
        """Report the output of a message that no model call followed; that of one that broke off is unknown."""
        if self._is_open and self._counted is not None:
            self._owed = attrs.evolve(_NOTHING, output_tokens=None, reasoning_tokens=None)
        if self._owed != _NOTHING:
            self.builder.model_used(self._owed)
            self._owed = _NOTHING

    def _streamed(self, text: str) -> None:
        if self.streams:
            self.builder.streamed(text)

    def _said(self, block: ContentBlock) -> None:
        match block:
            case TextBlock(text=text):
                self._texts.append(text)
            case ToolUseBlock(id=id, name=name, input=arguments):
                # The call may be answered before its message ends: the request counts now, and its output (`_owed`)
                # with the next, or at the end of the turn.
                self._count(
                    read_usage(
                        "anthropic",
                        {**self._usage, "output_tokens": 0, "output_tokens_details": {"thinking_tokens": 0}},
                    )
                )
                self._tell_texts()
                self.builder.called(self.servers.own_name(name), arguments, id, own=name in self.servers.own_tools)
                self._open[id] = name

    def _returned(self, block: ToolResultBlock, original: object) -> None:
        if block.tool_use_id not in self._open:
            return
        name = self._open.pop(block.tool_use_id)
        text = _text(block.content)
        refused = text.startswith((_REFUSED, f"Permission to use {name} "))
        dropped = _dropped(block.content)
        if block.is_error:
            self.builder.returned(error=text, id=block.tool_use_id, sent=not refused, dropped=dropped)
        else:
            self.builder.returned(text, id=block.tool_use_id, dropped=dropped)
        # What a server answered is kept beside the message as a structure, and what Claude Code made up as a text.
        self.servers.check_call(name, text if isinstance(original, str) and not refused else None)

    def _end_message(self) -> None:
        self._is_open = False
        total = read_usage("anthropic", self._usage)
        if self._counted is None:
            self._count(total)
        else:
            self._owed = attrs.evolve(total, input_tokens=0, cached_tokens=0)
        self._tell_texts()

    def _count(self, usage: Usage) -> None:
        """Count the model call, once, and with it the tokens that the one before turned out to have taken."""
        if self._counted is None:
            self._counted, owed, self._owed = usage, self._owed, _NOTHING
            self.builder.model_called(usage + owed)

    def _tell_texts(self) -> None:
        self.builder.said("\n".join(self._texts), truncated=self._truncated)
        self._texts = []


def _text(content: str | list[dict[str, Any]] | None) -> str:
    """Return what the model is told of a tool's result, with a stand-in for what is not text."""
    if not isinstance(content, list):
        return content or ""
    return "\n".join(str(item["text"]) if item.get("type") == "text" else f"[{item.get('type')}]" for item in content)


def _dropped(content: str | list[dict[str, Any]] | None) -> Iterator[ContentKind]:
    """Yield the kind of what Claude Code saved to a file in place of showing it; the model has no tool to read it."""
    for item in content if isinstance(content, list) else ():
        if item.get("type") == "text" and (saved := _SAVED.match(str(item["text"]))):
            yield "audio" if saved["what"] == "Audio" else "resource"
