"""The records that flow through a run: sample, transcript, trial.

All are frozen. Times are seconds; token counts are whole numbers; `None` means unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import attrs

from keval.errors import Stage

__all__ = [
    "Attempt",
    "Characteristics",
    "Failure",
    "Level",
    "Message",
    "Sample",
    "ToolCall",
    "Transcript",
    "Trial",
    "Usage",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Level: TypeAlias = Literal["low", "medium", "high"]


@attrs.frozen
class Message:
    """One message of a conversation. `turn` counts from 0 within a trial."""

    role: Role
    text: str
    turn: int = 0


@attrs.frozen
class Sample:
    """One question with what is known about it.

    `question` is asked first and `turns`, the follow-up messages of the same user, after it in the same session.
    `answer` is the golden answer to the last of them. `history` is what user and assistant said earlier. `withheld`
    names the facts that no prompt shows, as answers are held against them: those that hooks added.
    """

    id: str
    question: str
    answer: str | None = None
    history: tuple[Message, ...] = ()
    turns: tuple[str, ...] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    withheld: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """Everything the user says in a trial, in order."""
        return (self.question, *self.turns)


@attrs.frozen
class ToolCall:
    """One tool call as the agent asked for it, with what came of it where it ran.

    `runs` is how often a server really executed it: 1 as a rule, more when a framework replayed the call, 0 when it
    never reached a server (an unknown tool, arguments the framework refused), `None` when nobody watched.
    `model_call` says which of the trial's model calls asked for it, from 1: calls of the same one are parallel.
    """

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    result: str | None = None
    error: str | None = None
    duration: float | None = None
    server: str | None = None
    turn: int = 0
    runs: int | None = None
    id: str | None = None
    model_call: int | None = None


def _plus(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b


@attrs.frozen
class Usage:
    """Tokens of one or more model calls. `input_tokens` includes cached ones, `output_tokens` includes reasoning."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _plus(self.input_tokens, other.input_tokens),
            _plus(self.output_tokens, other.output_tokens),
            _plus(self.cached_tokens, other.cached_tokens),
            _plus(self.reasoning_tokens, other.reasoning_tokens),
        )


@attrs.frozen
class Transcript:
    """What happened in a trial: messages, tool calls, tokens and time.

    `duration` is the wall time of all turns together and `turn_durations` that of each, from the question to the
    final answer. `tools` are the names the model was really offered; `None` when the adapter cannot tell.
    `unlisted_calls` are calls of the last turn of which only the number is known, besides `tool_calls`; `None` when it
    is not known whether there were any.
    """

    messages: tuple[Message, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model_calls: int | None = None
    duration: float | None = None
    turn_durations: tuple[float, ...] = ()
    tools: tuple[str, ...] | None = None
    unlisted_calls: int | None = 0

    @cached_property
    def output(self) -> str:
        """The agent's final answer: the assistant's last words of the last turn, or an empty text.

        What it said before its last tool call is no answer.
        """
        last = max((message.turn for message in self.messages), default=0)
        for message in reversed(self.messages):
            if message.turn != last or message.role == "tool":
                return ""
            if message.role == "assistant" and message.text:
                return message.text
        return ""


@attrs.frozen
class Failure:
    """What went wrong in a trial or a score. A failure is data: it is counted and shown, never scored."""

    stage: Stage
    kind: str
    message: str
    traceback: str | None = None


@attrs.frozen
class Attempt:
    """An attempt at a trial that was given up and tried again, kept so that nothing is discarded in silence."""

    failure: Failure
    transcript: Transcript | None = None


@attrs.frozen
class Characteristics:
    """What an agent framework asks of its developer (metrics-assessment.md, Developer Experience Metrics).

    `files` is how many the same use case took; `tool_files` how many must change to add a tool; `setup`, `code` and
    `learning` are complexity levels. `None` is unknown.
    """

    files: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    setup: Level | None = None
    code: Level | None = None
    learning: Level | None = None
    tool_files: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(0)))
    memory: Literal["built-in", "manual"] | None = None
    errors: Literal["framework", "manual"] | None = None
    logging: Literal["framework", "basic"] | None = None
    documentation: Literal["comprehensive", "moderate", "minimal"] | None = None


@attrs.frozen
class Trial:
    """One agent's answer to one sample under one condition, once. `repetition` counts from 1.

    `complied` says whether the answer made the use of tools that its condition requires; `None` where it requires none,
    or there is no answer.
    """

    id: str
    sample: Sample
    agent: str
    condition: str
    repetition: int
    transcript: Transcript | None = None
    failure: Failure | None = None
    attempts: tuple[Attempt, ...] = ()
    complied: bool | None = None
    characteristics: Characteristics | None = None
    model: str | None = None

    @property
    def output(self) -> str:
        """The final answer's text; empty when there is none."""
        return self.transcript.output if self.transcript else ""

    @property
    def question(self) -> str:
        """The message that `output` answers: the last the user sent."""
        return self.sample.turns[-1] if self.sample.turns else self.sample.question

    @property
    def history(self) -> tuple[Message, ...]:
        """What user and assistant said before `question`: the sample's history, then the trial's earlier turns."""
        spoken = self.transcript.messages if self.transcript else ()
        final_turn = len(self.sample.turns)
        earlier = (m for m in spoken if m.turn < final_turn and m.role in ("user", "assistant") and m.text)
        return (*self.sample.history, *earlier)
