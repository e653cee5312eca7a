"""One attempt at a trial: what it is of, its number, its time, and to whom it is told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import attrs

from keval.contexts import TrialInfo
from keval.execute.donors import TrialResults
from keval.execute.losses import Losses
from keval.execute.stopwatch import Stopwatch
from keval.infrastructure import Outbox
from keval.live import EventKind, LiveEvent
from keval.models import Asker
from keval.recording.log import TrafficLog
from keval.recording.tape import AttemptTape
from keval.records import Failure, Sample, TrialKey

__all__ = ["Try"]


@attrs.frozen
class Try:
    """One attempt at a trial: its number (from 1), and how often an answer was discarded before.

    `log` keeps the traffic of all attempts at the trial, if the run is recorded, and `tape` is what the attempt is
    played from in a replay. If it `streams`, somebody reads answers as they are written.
    """

    key: TrialKey
    sample: Sample
    number: int
    resamples: int
    outbox: Outbox
    losses: Losses = attrs.field(factory=Losses)
    watch: Stopwatch = attrs.field(factory=Stopwatch)
    others: TrialResults | None = None
    log: TrafficLog | None = None
    tape: AttemptTape | None = None
    streams: bool = False

    @property
    def asker(self) -> Asker:
        """Who asks models in the attempt."""
        return Asker("agent", self.key.agent, self.key.id, self.key.repetition, self.number)

    @property
    def headers(self) -> dict[str, str]:
        """What a model that wants to know is told of the attempt."""
        told = {"x-keval-trial": quote(self.key.id, safe=""), "x-keval-repetition": str(self.key.repetition)}
        told |= {"x-keval-resample": str(self.resamples)} if self.resamples else {}
        return told | ({"x-keval-watched": "1"} if self.streams else {})

    @property
    def info(self) -> TrialInfo:
        """What contexts and hook plugins are told of the attempt."""
        key = self.key
        return TrialInfo(key.id, self.sample, key.agent, key.condition, key.repetition, self.number)

    def emit(self, kind: EventKind, data: Mapping[str, Any]) -> None:
        """Hand over a live event, if anybody listens just now."""
        if self.outbox.wants_events:
            self.outbox.event(LiveEvent(kind, self.key.id, self.number, time.time(), data))

    def begun(self) -> None:
        """Tell that the attempt begins."""
        key = self.key
        self.emit("trial_started", {"sample": self.sample.id, "agent": key.agent, "condition": key.condition})

    def ended(self, failure: Failure | None) -> None:
        """Tell that the attempt has ended."""
        told = {} if failure is None else {"failure": failure.kind, "stage": failure.stage, "message": failure.message}
        self.emit("trial_finished", {"failure": None, "stage": None, "message": None, **told})
