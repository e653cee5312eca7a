"""What runs the trials of a replay and asks its judges: from the recording, or live where that lacks something."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import attrs

from keval.errors import PreflightError, RunError
from keval.execute.attempts import RetryPolicy
from keval.execute.bringup.description import check_tool_listings
from keval.execute.bringup.preflight import Ready, preflight
from keval.execute.bringup.resources import ResourceScope
from keval.execute.trial.worker import PlanWorker
from keval.plan.plan import Plan
from keval.records.cassettes import REPLAY_MISS
from keval.records.manifest import Manifest, Rates
from keval.records.scores import Judgement, Rubric
from keval.records.trial import Sample, Trial, TrialKey
from keval.redaction import Redactor
from keval.run.active_run import RunBackend
from keval.score.judging import JudgeRunner, TrialJudge, Verdict
from keval.seams.distribution import Outbox, Worker
from keval_replay.cassette import volatile_of
from keval_replay.frames import FrameKey
from keval_replay.recorded_times import with_recorded_times
from keval_replay.recorder import Recorder
from keval_replay.recording import Recording, traffic_frame


@attrs.define(eq=False)
class LiveSide:
    """The models and servers of a replay, which are brought up at the first miss. It counts what was asked of them."""

    plan: Plan
    recording: Recording
    scope: ResourceScope
    redactor: Redactor
    trials: int = attrs.field(default=0, init=False)
    judgements: int = attrs.field(default=0, init=False)
    _worker: PlanWorker | None = attrs.field(default=None, init=False)
    _bringing: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def run(self, key: TrialKey, sample: Sample, outbox: Outbox) -> Trial:
        """Run a trial whole, and record it. Raises RunError: what it needs is not there."""
        worker = await self.worker()
        self.trials += 1
        return await worker.run(key, sample, outbox)

    def counted(self, manifest: Manifest) -> Manifest:
        """Return the manifest with how many trials and judgements were live."""
        entry = manifest.replay and attrs.evolve(
            manifest.replay, live_trials=self.trials, live_judgements=self.judgements
        )
        return attrs.evolve(manifest, replay=entry)

    async def worker(self) -> PlanWorker:
        """Return a worker for which all is up. Raises RunError: what is needed is not there."""
        async with self._bringing:
            if self._worker is None:
                try:
                    ready = await preflight(self.plan, self.scope, self.redactor, traffic=Recorder(self.redactor))
                    check_tool_listings(self.recording.manifest, ready)
                except PreflightError as error:
                    told = "requests that are not in the recording cannot be made live either"
                    raise RunError("\n  ".join([f"{told}:", *error.problems])) from error
                self._worker = PlanWorker(self.plan, ready, rates=Rates.of(self.recording.manifest))
            return self._worker


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
            frame = FrameKey("agent", trial=key.id)
            outbox.traffic(key.id, traffic_frame(frame, self.recording.of_trial(key.id), self.live.redactor))
        declared = volatile_of(self.played.plan).get(("agent", key.agent), ())
        return with_recorded_times(trial, self.recording.run.trial(key.id), declared)


async def _at_once(seconds: float) -> None:
    """Wait for none of these seconds: what is played is not busy."""
    await asyncio.sleep(0)


def replaying_backend(recording: Recording, live: LiveSide | None = None) -> RunBackend:
    """Return what runs and scores the trials of a replay; `live` is asked what the recording does not have."""

    def worker(plan: Plan, ready: Ready, rates: Rates) -> Worker:
        return ReplayingWorker(PlanWorker(plan, ready, _at_once, rates=rates), recording, live)

    def judge(runner: JudgeRunner) -> TrialJudge:
        played = attrs.evolve(runner, retry_policy=attrs.evolve(runner.retry_policy, sleep=_at_once))
        return played if live is None else _ReplayingJudge(played, recording, live)

    return RunBackend(worker, judge, live.counted, is_live=True) if live else RunBackend(worker, judge, is_live=False)


@attrs.frozen(eq=False)
class _ReplayingJudge:
    """Plays each judgement. One that is not in the recording is made again whole by `live`."""

    played: JudgeRunner
    recording: Recording
    live: LiveSide

    async def judge_trial(
        self, trial: Trial, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[list[Verdict], Judgement]:
        label, keep = self.played.label, self.played.keep
        played = attrs.evolve(self.played, keep=None)
        verdicts, judgement = await played.judge_trial(trial, rubrics, repetition)
        if not any(verdict.failure is not None and verdict.failure.kind == REPLAY_MISS for verdict in verdicts):
            if keep is not None:
                frame = FrameKey("judge", trial=trial.id, judge=label, repetition=repetition)
                traffic = self.recording.of_judgement(trial.id, label, repetition)
                keep(trial.id, traffic_frame(frame, traffic, self.live.redactor))
            return verdicts, judgement
        ready = (await self.live.worker()).ready
        self.live.judgements += 1
        retry_policy = RetryPolicy(played.execution.retry, asyncio.sleep, played.retry_policy.rng)
        live = attrs.evolve(self.played, judge=ready.judges[label], exchange=ready.exchange, retry_policy=retry_policy)
        return await live.judge_trial(trial, rubrics, repetition)
