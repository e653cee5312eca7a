"""Replaying a run: an evaluation as it is now is played the traffic of a recorded run, and scored.

Nothing is connected to, unless misses are asked live: no provider of models and no server. Recorded samples have the
facts that they had, and hook plugins are told of trials, but prepare none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Budget
from keval.errors import PreflightError, RunError
from keval.execute.attempts import RetryPolicy
from keval.execute.bringup.description import check_tool_listings
from keval.execute.bringup.preflight import Ready, preflight
from keval.execute.bringup.resources import ResourceScope
from keval.execute.models.gate import Failed, RequestScope, sent
from keval.execute.models.prices import find_prices
from keval.execute.trial.worker import PlanWorker
from keval.files import read_kept, replacing
from keval.plan.plan import Plan
from keval.records.cassettes import REPLAY_MISS, Volatile
from keval.records.manifest import JudgeEntry, Manifest, Rates, ReplayEntry, ScorerEntry
from keval.records.models import ModelRequest, ModelResponse, Next, Price
from keval.records.scores import Judgement, Rubric
from keval.records.trial import Sample, Trial, TrialKey
from keval.redaction import Redactor
from keval.run import steps
from keval.run.active_run import BroughtUp, RunBackend, RunOptions, RunStart
from keval.run.conclusion import Summary
from keval.run.resumption import changes, sample_changes
from keval.score.judging import JudgeRunner, ScoreOutcome, TrialJudge
from keval.seams.distribution import Outbox, Worker
from keval.seams.hooks import Hooks
from keval.seams.interfaces import DeclaresVolatile
from keval.store.run import Run
from keval.store.serialization import dump
from keval.store.writer import RunWriter
from keval_analysis.findings.anchors import ANCHORS
from keval_replay.cassette import AttemptCassette, Player
from keval_replay.frames import FrameKey
from keval_replay.recorded_times import with_recorded_times
from keval_replay.recorder import Recorder
from keval_replay.recording import Recording, traffic_frame
from keval_replay.replay_plan import Replay

_LABELLED = ("agents", "contexts", "conditions")


async def replay_run(replay: Replay, plan: Plan, root: Path, options: RunOptions | None = None) -> tuple[Run, Summary]:
    """Replay a recorded run by a plan of its samples, score it and write its summary.

    Trials that were not recorded are left out, or run live with those that ask for what the recording does not have.
    Prices are those of the recorded run, unless misses are asked live, and budgets are not applied.

    Raises PreflightError, RunError: the run's directory cannot be written, the recording is damaged, or what is to be
    run live cannot be; and StoppedError when the run was asked to stop while trials were run.
    """
    recording, is_live = replay.recording, replay.misses == "live"
    async with RunStart.open(plan, options or RunOptions()) as opened:
        redact = opened.redact
        live = LiveSide(plan, recording, opened.scope, redact) if is_live else None
        # What is played costs nothing, so that a budget must not stop it.
        start = attrs.evolve(opened, budget=Budget(), backend=replaying_backend(recording, live))
        # Hook plugins prepare nothing.
        player = Player(recording, redact, volatile_of(plan), Recorder(redact) if is_live else None)
        ready = await preflight(plan, start.scope, redact, Hooks.of(()), traffic=player, gate=PlayedGate)
        prices = _prices(plan, ready, recording.manifest, is_live=is_live)
        writer = start.create(root)
        asked = await _freeze(start, writer, replay, plan)
        async with start.writing(writer):
            run = steps.describe(start, writer, BroughtUp(ready, prices), plan, asked=asked)
            before, differing = recording.manifest, tuple(_changes(replay, plan, run.manifest, redact))
            # Of a recording that was renewed in part, when its oldest part was made.
            oldest = before.replay.recorded if before.replay else before.recording.since if before.recording else ""
            entry = ReplayEntry(before.run, oldest, replay.misses, changes=differing)
            run.amend(replay=entry)
            if live is not None:
                run.record_from(start.at.isoformat(timespec="seconds"))
            left_out = () if live else {key for key in plan.trials() if key.id not in recording.trials}
            return run.run, await steps.complete(run, plan, done=left_out)


def _prices(plan: Plan, ready: Ready, before: Manifest, *, is_live: bool) -> dict[str, Price]:
    """Return what models cost: as in the recorded run, unless some are asked."""
    if is_live:
        unbounded = attrs.evolve(plan.evaluation, budget=Budget())
        return find_prices(unbounded, plan.askers, ready.endpoints, before)
    models = {name for item in plan.askers for name in item.model_names}
    return {model: price for model, price in before.prices.items() if model in models}


async def _freeze(start: RunStart, writer: RunWriter, replay: Replay, plan: Plan) -> dict[str, Sample]:
    """Write the samples as they were recorded, and those that are renewed with what hook plugins know of them now.

    Returns those of the latter that hold a secret, by id.
    """
    # The anchors of then, as the recording has the judgements of these.
    if (kept := replay.recording.run.path / ANCHORS).exists():
        with replacing(writer.path / ANCHORS) as file:
            file.write(read_kept(kept))
    with writer.freezing(start.redact) as write:
        renewed = plan.samples.pick([at for at, name in enumerate(plan.samples.ids) if name in replay.renewed])
        asked = start.hooks.with_facts(renewed, plan.evaluation.execution.max_concurrent)
        found = {sample.id: sample async for sample in asked}
        redacted = [sample.id for sample in plan.samples if write(found.get(sample.id, sample))]
        return {name: found[name] for name in redacted if name in found}


def _changes(replay: Replay, plan: Plan, now: Manifest, redact: Redactor) -> Iterator[str]:
    """Yield what differs from the recorded run, in what both have."""
    before = replay.recording.manifest
    config = {key: section for key, section in before.config.items() if key not in _LABELLED or key in now.config}
    labelled = {key: _shared(config[key], now.config[key]) for key in _LABELLED if key in config}
    shared = attrs.evolve(
        before,
        config={**config, **labelled},
        agents=_shared(before.agents, now.agents),
        conditions=_shared(before.conditions, now.conditions),
    )
    yield from changes(shared, now)
    # Equal files have equal samples, which need not be read.
    if replay.dataset is not None and before.dataset.sha256 != now.dataset.sha256:
        frozen, asked = replay.recording.run.samples, {*plan.samples.ids}
        both = frozen.pick([at for at, name in enumerate(frozen.ids) if name in asked])
        yield from sample_changes(both, replay.dataset.samples, redact)
    yield from scorer_changes(before, now)


def _shared(before: Any, now: Any) -> Any:
    """Return the labels of a section that both have."""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return before
    return {label: entry for label, entry in before.items() if label in now}


@attrs.define(eq=False)
class LiveSide:
    """The models and servers of a replay, which are brought up at the first miss. It counts what was asked of them.

    `rates` are those of the new run, which are known before its first trial.
    """

    plan: Plan
    recording: Recording
    scope: ResourceScope
    redactor: Redactor
    rates: Rates = attrs.field(factory=Rates, init=False)
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
        # Trials run at once, and the first misses of several must bring servers up once.
        async with self._bringing:
            if self._worker is None:
                try:
                    ready = await preflight(self.plan, self.scope, self.redactor, traffic=Recorder(self.redactor))
                    check_tool_listings(self.recording.manifest, ready)
                except PreflightError as error:
                    told = "requests that are not in the recording cannot be made live either"
                    raise RunError("\n  ".join([f"{told}:", *error.problems])) from error
                self._worker = PlanWorker(self.plan, ready, rates=self.rates)
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
            # Together with what is recorded live, the new run has a whole recording, which can be replayed itself.
            outbox.traffic(key.id, traffic_frame(frame, self.recording.of_trial(key.id), self.live.redactor))
        declared = volatile_of(self.played.plan).get(("agent", key.agent), ())
        return with_recorded_times(trial, self.recording.run.trial(key.id), declared)


async def _at_once(seconds: float) -> None:
    """Wait for none of these seconds: what is played is not busy."""
    # Other tasks still get their turn, as they do in a wait.
    await asyncio.sleep(0)


def replaying_backend(recording: Recording, live: LiveSide | None = None) -> RunBackend:
    """Return what runs and scores the trials of a replay; `live` is asked what the recording does not have."""

    def worker(plan: Plan, ready: Ready, rates: Rates) -> Worker:
        if live is not None:
            live.rates = rates
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
    ) -> tuple[list[ScoreOutcome], Judgement]:
        label, keep = self.played.label, self.played.keep
        verdicts, judgement = await self.played.judge_trial(trial, rubrics, repetition)
        if not any(verdict.failure is not None and verdict.failure.kind == REPLAY_MISS for verdict in verdicts):
            if keep is not None:
                frame = FrameKey("judge", trial=trial.id, judge=label, repetition=repetition)
                traffic = self.recording.of_judgement(trial.id, label, repetition)
                keep(trial.id, traffic_frame(frame, traffic, self.live.redactor))
            return verdicts, judgement
        ready = (await self.live.worker()).ready
        self.live.judgements += 1
        # The played judge waits for nothing between attempts, which a live endpoint would not bear.
        retry_policy = RetryPolicy(self.played.execution.retry, asyncio.sleep, self.played.retry_policy.rng)
        live = attrs.evolve(self.played, judge=ready.judges[label], exchange=ready.exchange, retry_policy=retry_policy)
        return await live.judge_trial(trial, rubrics, repetition)


@attrs.frozen
class PlayedGate:
    """Repeats a request where it was repeated when it was recorded, at once; remembers nothing of other requests."""

    async def ask(self, request: ModelRequest, send: Next, scope: RequestScope) -> ModelResponse:
        """Answer as the gate did that was recorded; see `Gate`."""
        while isinstance(outcome := await sent(request, send), Failed):
            played = scope.traffic if isinstance(scope.traffic, AttemptCassette) else None
            refusal = played.repeated(outcome.status, outcome.message) if played is not None else None
            if refusal is None:
                return outcome.passed_on()
            scope.requests.refused(refusal)
        return outcome

    async def deny(self, refused: str) -> None:
        """Do nothing: what was recorded after it is played."""

    def reopen(self) -> None:
        """Do nothing: a recording is not given up."""


def volatile_of(plan: Plan) -> dict[tuple[str, str], Sequence[Volatile]]:
    """Return what agents and judges declare as volatile, by role and label."""
    askers = [("agent", item) for item in plan.agents] + [("judge", item) for item in plan.scorers.judges]
    declared = [(role, item.label, item.plugin) for role, item in askers]
    return {(role, label): plugin.volatile for role, label, plugin in declared if isinstance(plugin, DeclaresVolatile)}


def scorer_changes(before: Manifest, now: Manifest) -> list[str]:
    """Return which metrics and rubrics changed, are new or are gone, one line each, with what changed of them."""
    told = []
    for entry in now.scorers:
        old = before.scorer(entry.scorer)
        if old is None:
            told.append(f"{_named(entry)}: it is new")
        elif old.digest != entry.digest:
            parts = _parts(old, entry, *(each.judges.get(entry.judge or "") for each in (before, now)))
            told.append(f"{_named(entry)}: {', '.join(parts) or 'its version'} changed, so it scored anew")
    gone = [entry for entry in before.scorers if now.scorer(entry.scorer) is None]
    return [*told, *(f"{_named(entry)}: it does not score any more" for entry in gone)]


def _named(entry: ScorerEntry) -> str:
    return f"metric {entry.metric}" if entry.judge is None else f"rubric {entry.metric} by {entry.judge}"


def _parts(before: ScorerEntry, now: ScorerEntry, was: JudgeEntry | None, judge: JudgeEntry | None) -> Iterator[str]:
    """Yield what changed of a scorer, and of its judge if both runs have it."""
    if before.rubric != now.rubric:
        yield "its text"
    yield from _options({**before.defaults, **before.options}, {**now.defaults, **now.options})
    if was is not None and judge is not None:
        yield from (f"the judge's {name}" for name in ("type", "model") if getattr(was, name) != getattr(judge, name))
        yield from _options({**was.defaults, **was.options}, {**judge.defaults, **judge.options})


def _options(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *now)):
        # As JSON has them, so that a tuple equals the list that was read.
        # `_parts` tells of the model by its own field.
        if name != "model" and dump(before.get(name)) != dump(now.get(name)):
            yield f"the option {name}"
