"""Replaying a run: its trials and judgements from a recording, or live where that does not have what is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import attrs

from keval.execute.attempts import Patience, Sleep
from keval.execute.bringup.preflight import Ready
from keval.execute.replaying import LiveSide, ReplayingWorker
from keval.execute.trial.worker import PlanWorker
from keval.plan.plan import Plan
from keval.recording.recording import Recording
from keval.records.cassettes import REPLAY_MISS
from keval.records.manifest import Manifest
from keval.records.scores import Judgement, Rubric
from keval.records.trial import Trial
from keval.score.judging import JudgeRunner, TrialJudge, Verdict
from keval.seams.infrastructure import Worker


async def _at_once(seconds: float) -> None:
    """Wait for none of these seconds: what is played is not busy."""
    await asyncio.sleep(0)


@attrs.frozen
class Replaying:
    """What runs and scores the trials of a replay; `live` is asked what the recording does not have."""

    recording: Recording
    live: LiveSide | None = None
    sleep: Sleep = _at_once

    def worker(self, plan: Plan, ready: Ready) -> Worker:
        """Return what runs the trials of a plan that is up."""
        return ReplayingWorker(PlanWorker(plan, ready, self.sleep), self.recording, self.live)

    def judge(self, played: JudgeRunner) -> TrialJudge:
        """Return what asks a judge."""
        return played if self.live is None else _ReplayingJudge(played, self.recording, self.live)

    def counted(self, manifest: Manifest) -> Manifest:
        """Return the manifest with how many trials and judgements were live."""
        if manifest.replay is None or self.live is None:
            return manifest
        replay = attrs.evolve(manifest.replay, live_trials=self.live.trials, live_judgements=self.live.judgements)
        return attrs.evolve(manifest, replay=replay)


@attrs.frozen(eq=False)
class _ReplayingJudge:
    """Plays each judgement. One that is not in the recording is made again whole by `live`."""

    played: JudgeRunner
    recording: Recording
    live: LiveSide

    async def judge_trial(
        self, trial: Trial, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[list[Verdict], Judgement]:
        label, written = self.played.label, self.played.recording
        played = attrs.evolve(self.played, recording=None)
        verdicts, judgement = await played.judge_trial(trial, rubrics, repetition)
        if not any(verdict.failure is not None and verdict.failure.kind == REPLAY_MISS for verdict in verdicts):
            if written is not None:
                written.judgement(trial.id, label, repetition, self.recording.of_judgement(trial.id, label, repetition))
            return verdicts, judgement
        ready = await self.live.ready()
        self.live.judgements += 1
        patience = Patience(played.execution.retry, asyncio.sleep, played.patience.rng)
        live = attrs.evolve(self.played, judge=ready.judges[label], exchange=ready.exchange, patience=patience)
        return await live.judge_trial(trial, rubrics, repetition)
