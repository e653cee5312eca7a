"""One attempt at a trial: what it is of, its number, its time, and what it reports to."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import attrs

from keval.errors import ServerLostError
from keval.execute.attempts import Stopwatch
from keval.records.models import Asker
from keval.records.servers import McpServer
from keval.records.trial import Failure, Sample, TrialKey
from keval.seams.contexts import ServerUse, TrialInfo
from keval.seams.distribution import Outbox
from keval.seams.live_events import EventKind, LiveEvent
from keval.seams.traffic import AttemptTraffic
from keval.seams.use_meter import UseMeter

_UNCOUNTED = 3
"""How many attempts of a trial do not count because a call of another trial may have cost it a server."""
_PARALLEL = 2
"""How many of these it takes until the trial waits for the turn of its own."""


@attrs.define
class LostServerAllowance:
    """What became of the servers of one trial, over all its attempts.

    A trial that has lost a server gets servers of its own from then on. If its call was the cause, it harms no other
    trial again; if it was not, no other trial harms it again. A server that keval does not start can give it no more
    than a session; if that is lost, too, such trials take turns.
    """

    _lost: bool = False
    _stood_by: bool = False
    _uncounted: int = 0

    def note(self, servers: Iterable[McpServer]) -> None:
        """Note which servers an attempt has lost."""
        logs = [server.log for server in servers if server.log is not None and server.log.lost is not None]
        # A log of another kind tells of a call that failed by itself, which costs no other trial its server.
        self._lost = self._lost or any(log.bystander or log.kind == ServerLostError.kind for log in logs)
        self._stood_by = bool(logs) and all(log.bystander for log in logs)

    def for_next_attempt(self, use: ServerUse) -> ServerUse:
        """Return the use of a server that the next attempt makes of it."""
        if not self._lost:
            return use
        own = attrs.evolve(use.server, isolation="trial")
        return attrs.evolve(use, server=own, in_turn=self._uncounted >= _PARALLEL)

    def excuses(self) -> bool:
        """Return whether the attempt noted last does not count; ask once for each."""
        spared = self._stood_by and self._uncounted < _UNCOUNTED
        self._uncounted += spared
        return spared


@attrs.frozen
class TrialAttempt:
    """One attempt at a trial: its number (from 1), and how often an answer was discarded before.

    `traffic` is there if the attempt's traffic is kept or played. If it `streams`, somebody reads answers as they are
    written. `meter` counts what the trial uses, if trials have limits. `model_headers` mark model requests as the
    attempt's.
    """

    key: TrialKey
    sample: Sample
    number: int
    resamples: int
    outbox: Outbox
    allowance: LostServerAllowance = attrs.field(factory=LostServerAllowance)
    stopwatch: Stopwatch = attrs.field(factory=Stopwatch)
    traffic: AttemptTraffic | None = None
    streams: bool = False
    meter: UseMeter | None = None
    model_headers: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def asker(self) -> Asker:
        """Who asks models in the attempt."""
        return Asker("agent", self.key.agent, self.key.id, self.key.repetition, self.number)

    @property
    def headers(self) -> dict[str, str]:
        """What a model that wants to know is told of the attempt."""
        # An id may be in any script, and a header is ASCII.
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
