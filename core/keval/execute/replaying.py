"""Replaying trials: from the recording of a run, or live where that does not have what is asked."""

from __future__ import annotations

import asyncio
from typing import Literal

import attrs

from keval.dataset.read import Dataset
from keval.errors import PreflightError, RunError
from keval.execute.bringup.description import check_offers
from keval.execute.bringup.preflight import Ready, preflight
from keval.execute.bringup.resources import ResourceScope
from keval.execute.models.endpoints import volatile_of
from keval.execute.trial.worker import PlanWorker
from keval.plan.plan import Plan
from keval.recording.recording import Recording
from keval.recording.times import with_recorded_times
from keval.records.cassettes import REPLAY_MISS
from keval.records.sample import Sample
from keval.records.trial import Trial, TrialKey
from keval.redaction import Redactor
from keval.seams.infrastructure import Outbox


@attrs.frozen
class Replay:
    """How a run is replayed: from which recording, and what becomes of what that does not have.

    `dataset` is the one that the evaluation names now, if it was read: the recorded samples are asked all the same,
    except the `renewed` ones, by id.
    """

    recording: Recording
    misses: Literal["fail", "live"] = "fail"
    dataset: Dataset | None = None
    renewed: frozenset[str] = frozenset()


@attrs.define(eq=False)
class LiveSide:
    """The models and servers of a replay, which are brought up at the first miss. It counts what was asked of them."""

    plan: Plan
    recording: Recording
    scope: ResourceScope
    redactor: Redactor
    trials: int = attrs.field(default=0, init=False)
    judgements: int = attrs.field(default=0, init=False)
    _up: tuple[Ready, PlanWorker] | None = attrs.field(default=None, init=False)
    _bringing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def run(self, key: TrialKey, sample: Sample, outbox: Outbox) -> Trial:
        """Run a trial whole, and record it. Raises RunError: what it needs is not there."""
        _, worker = await self._brought_up()
        self.trials += 1
        return await worker.run(key, sample, outbox)

    async def ready(self) -> Ready:
        """Return what is up. Raises RunError: what is needed is not there."""
        ready, _ = await self._brought_up()
        return ready

    async def _brought_up(self) -> tuple[Ready, PlanWorker]:
        async with self._bringing:
            if self._up is None:
                try:
                    ready = await preflight(self.plan, self.scope, self.redactor, recorded=True)
                    check_offers(self.recording.manifest, ready)
                except PreflightError as error:
                    told = "what the recording does not have cannot be asked live either"
                    raise RunError("\n  ".join([f"{told}:", *error.problems])) from error
                self._up = ready, PlanWorker(self.plan, ready)
            return self._up


@attrs.frozen(eq=False)
class ReplayingWorker:
    """Plays each trial with its recorded times. A trial that is not in the recording is run again whole by `live`."""

    played: PlanWorker
    recording: Recording
    live: LiveSide | None = None

    async def run(self, key: TrialKey, sample: Sample, outbox: Outbox) -> Trial:
        """Replay a trial; see `keval.seams.infrastructure.Worker`."""
        if self.live is not None and key.id not in self.recording.trials:
            return await self.live.run(key, sample, outbox)
        trial = await self.played.run(key, sample, outbox)
        if self.live is not None:
            if trial.failure is not None and trial.failure.kind == REPLAY_MISS:
                return await self.live.run(key, sample, outbox)
            outbox.traffic(key.id, self.recording.of_trial(key.id))
        declared = volatile_of(self.played.plan).get(("agent", key.agent), ())
        return with_recorded_times(trial, self.recording.trial(key.id), declared)
