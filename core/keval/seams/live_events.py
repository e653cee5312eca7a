"""Live events of trials, for whoever listens while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

EventKind: TypeAlias = Literal[
    "trial_started",
    "turn_started",
    "model_called",
    "model_refused",
    "text_streamed",
    "said",
    "tool_called",
    "tool_returned",
    "server_called",
    "server_returned",
    "trial_finished",
    "scored",
    "play_changed",
]

EmitEvent: TypeAlias = "Callable[[EventKind, Mapping[str, Any]], object]"
"""Takes the kind and data of a live event of one attempt, and makes no event while nobody listens."""


@attrs.frozen
class LiveEvent:
    """Something that happened in a trial just now. `at` is Unix time in seconds; `data` depends on the kind.

    `trial_started` has `sample`, `agent`, `condition`; `turn_started` `turn` and `text`; `model_called` `usage`;
    `model_refused` `status`, `message`, `waited`; `text_streamed` `turn` and `text`, a piece of what the agent is about
    to have `said` (`turn`, `text`); `tool_called` `name`, `arguments`, `id`; `tool_returned` `name`, `id`, `result`,
    `error`, `duration`. `server_called` (`server`, `tool`, `arguments`, `call`) and `server_returned` (`server`,
    `tool`, `call`, `error`, `duration`) are of the tap, when a call is sent to its server and has come back; `call`
    numbers those of the attempt to that server, from 1. `trial_finished` tells that an attempt ended: `failure` is the
    kind of its failure, if it failed, with `stage` and `message`. `scored` has the fields of a score: `metric`,
    `judge`, the judge's `repetition`, `value`, `neutral`, `reason`, `details`, and the kind of its `failure`. Every
    duration is in seconds. `play_changed` is of no trial: `what` changed in a play that is open.
    """

    kind: EventKind
    trial: str
    attempt: int
    at: float
    data: Mapping[str, Any] = attrs.field(factory=dict)
