"""Steps: one thing that happened in an attempt, between two sides, and the timeline that they make."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from keval.records import Failure, Usage

__all__ = ["AGENT", "MODEL", "USER", "Lane", "LaneKind", "Step", "StepKind", "Timeline"]

LaneKind: TypeAlias = Literal["user", "agent", "model", "server"]
StepKind: TypeAlias = Literal["asked", "model", "refusal", "tool", "exchange", "said"]


@attrs.frozen
class Lane:
    """One side that took part. `name` is a server's; it is empty where it is not known which server was called."""

    kind: LaneKind
    name: str = ""


USER, AGENT, MODEL = Lane("user"), Lane("agent"), Lane("model")


@attrs.frozen
class Step:
    """One step: `sender` turned to `receiver`.

    `asked` is a message of the user and `said` one of the agent; both take no time. `model` is a model request with its
    reply, `refusal` one that was refused or broke off, `tool` a tool call, and `exchange` what else passed between
    agent and server. A call that never reached a server has the agent on both sides.

    `start` is in seconds after the attempt's first turn began, and `duration` in seconds; both are `None` where they
    are unknown. With `is_bound` only the end is known: the step began no earlier than `start`. `waited` is how long
    the agent waited after a refusal until it asked again. `model_call` is the number of a model's reply, from 1, and of
    a tool call, that of the reply which asked for it: calls with the same number are parallel. `message`, `call` and
    `exchange` are indices into the transcript's messages, tool calls and exchanges.
    """

    kind: StepKind
    sender: Lane
    receiver: Lane
    label: str
    turn: int = 0
    start: float | None = None
    duration: float | None = None
    is_bound: bool = False
    usage: Usage | None = None
    error: str | None = None
    status: int | None = None
    waited: float | None = None
    model_call: int | None = None
    message: int | None = None
    call: int | None = None
    exchange: int | None = None

    @property
    def end(self) -> float | None:
        """When it ended, in seconds on the axis; `None` where this is unknown."""
        return None if self.start is None or self.duration is None else self.start + self.duration


@attrs.frozen
class Timeline:
    """The steps of one attempt at a trial, in their order, with the `lanes` that they run between.

    `attempt` counts from 1. `began` is when its first turn began, as Unix time, and `after` the seconds since the
    trial's first attempt began. `seconds` is how long the axis is; `None` if nothing is known of times. `measured` says
    that the times of models and servers are those of a recording's traffic. Without it, the axis leaves out the
    `waited` seconds between a refusal and the next request, and nobody knows where they were.
    """

    attempt: int
    steps: tuple[Step, ...]
    lanes: tuple[Lane, ...]
    seconds: float | None = None
    began: float | None = None
    after: float | None = None
    measured: bool = False
    waited: float = 0.0
    failure: Failure | None = None

    @property
    def untimed(self) -> int:
        """How many steps have no known place on the axis."""
        return sum(step.start is None for step in self.steps)
