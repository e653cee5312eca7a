"""A trial: one agent under one condition asked one sample once, with what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from keval.errors import Stage
from keval.records.sample import Sample
from keval.records.transcript import Message, Transcript


@attrs.frozen
class Failure:
    """What went wrong in a trial or a score. A failure is data: it is counted and shown, never scored.

    `kind` is a short stable name for grouping. `traceback` is there for errors that keval cannot explain.
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
    `model` is `provider/name`.
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
    def output(self) -> str:
        """The text of the final answer; empty when there is none."""
        return self.transcript.output if self.transcript else ""

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
