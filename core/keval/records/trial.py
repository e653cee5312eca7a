"""A trial: one agent under one condition asked one sample once, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from keval.errors import FailureKind, Stage
from keval.records.transcript import Message, Transcript


@attrs.frozen
class Expectation:
    """What must be true of every answer to a sample, in all arms or in those of some `conditions`.

    The answer has every text of `contains` and none of `not_contains`, every pattern of `regex` is found in it, each
    tool of `calls` was called and none of `not_calls`, and the answer took at most `max_seconds`. The agent read each
    skill, or other text of a context, of `reads` and none of `not_reads`. `tool_called` is another name of `calls`.
    """

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    tool_called: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    not_reads: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    not_calls: tuple[str, ...] = ()
    max_seconds: float | None = None
    conditions: tuple[str, ...] = ()


@attrs.frozen
class Sample:
    """One question with what is known about it.

    `question` is asked first and `turns`, the follow-up messages of the same user, after it in the same session.
    `answer` is the golden answer to the last of them, and `other_answers` are as good. `history` is what user and
    assistant said earlier. `withheld` names the facts that hooks added. No prompt shows these, nor what is expected of
    the answers (`expect`), because answers are compared with them. `workspace` and `verify` are as a config writes
    them, for this sample alone, and `solution` is what `keval check` does in place of an agent.
    """

    id: str
    question: str
    answer: str | None = None
    history: tuple[Message, ...] = ()
    turns: tuple[str, ...] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    withheld: tuple[str, ...] = ()
    expect: tuple[Expectation, ...] = ()
    workspace: Mapping[str, Any] | None = None
    verify: tuple[Any, ...] = ()
    solution: Any = None
    other_answers: tuple[str, ...] = attrs.field(default=(), metadata={"sparse": True})

    @property
    def answers(self) -> tuple[str, ...]:
        """The golden answers, of which any counts."""
        return () if self.answer is None else (self.answer, *self.other_answers)

    @property
    def asked(self) -> tuple[str, ...]:
        """Everything the user says in a trial, in order."""
        return (self.question, *self.turns)

    def as_had(self, transcript: Transcript | None) -> Sample:
        """Return the sample as an agent had it: with the history and the facts of its own that a transcript has."""
        if transcript is None or (transcript.history is None and transcript.facts is None):
            return self
        history = self.history if transcript.history is None else transcript.history
        return attrs.evolve(self, history=history, facts={**self.facts, **(transcript.facts or {})})


PLACEHOLDER = "replace-me-"
"""How the ids of questions begin that `keval init` writes to be replaced."""
LIMIT: FailureKind = "limit"
"""The kind of the failure of a trial that reached one of `execution.limits`."""
WRITTEN_CALL: FailureKind = "tool_call_as_text"
"""The kind of the failure of a trial whose answer is a call of a tool that no parser read."""
WRITTEN_CALL_REMEDY = (
    "switch on the parser of tool calls where the model is served (vLLM: --enable-auto-tool-choice and"
    " --tool-call-parser; llama.cpp: --jinja), or take a model that calls tools"
)


@attrs.frozen
class Failure:
    """What went wrong in a trial or a score. A failure is data: it is counted and shown, never scored.

    `kind` is a short stable name for grouping; see `FailureKind`. `traceback` is there for errors that keval cannot
    explain.
    """

    stage: Stage
    kind: str
    message: str
    traceback: str | None = None


@attrs.frozen
class Attempt:
    """An attempt at a trial that failed and was repeated. It is kept: a run discards nothing silently.

    `counted` is false if it did not count against `max_attempts`, as a call of another trial may have cost it a server.
    """

    failure: Failure
    transcript: Transcript | None = None
    counted: bool = True


@attrs.frozen
class TrialKey:
    """One trial of a plan's grid: agent × condition × sample × repetition (from 1). `sample` is the sample's id."""

    id: str
    agent: str
    condition: str
    sample: str
    repetition: int


@attrs.frozen
class Trial:
    """One agent's answer to one sample under one condition, once. `repetition` counts from 1.

    `complied` says whether the answer used tools as its condition requires; `None` where the condition requires
    nothing, or there is no answer. `characteristics` is what the agent's adapter and the config say about the agent.
    `model` is `provider/name`. `sample` has the history and facts that the agent had, which may be its own.
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
    characteristics: Mapping[str, Any] = attrs.field(factory=dict)
    model: str | None = None

    @property
    def key(self) -> TrialKey:
        """Which trial of the plan's grid it is."""
        return TrialKey(self.id, self.agent, self.condition, self.sample.id, self.repetition)

    @property
    def output(self) -> str:
        """The text of the final answer; empty when there is none."""
        return self.transcript.output if self.transcript else ""

    @property
    def truncated(self) -> bool:
        """Whether a limit of length ended `output` before the model did, as far as the agent's adapter can tell."""
        return self.transcript is not None and self.transcript.truncated

    @property
    def question(self) -> str:
        """The message that `output` answers: the last one of the user."""
        return self.sample.turns[-1] if self.sample.turns else self.sample.question

    @property
    def history(self) -> tuple[Message, ...]:
        """What user and assistant said before `question`: the sample's history, then the trial's earlier turns."""
        spoken = self.transcript.messages if self.transcript else ()
        final_turn = len(self.sample.turns)
        earlier = (m for m in spoken if m.turn < final_turn and m.role in ("user", "assistant") and m.text)
        return (*self.sample.history, *earlier)
