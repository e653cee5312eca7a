"""The steps of a run, in their order: bring up, freeze, describe, begin, execute, score, summarise.

Every trial is on disk before it counts as done, and is scored as it stands there, while others run or afterwards. So a
finished run can be scored again by the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from keval.config.evaluation import Budget, failure_limit
from keval.errors import RunError
from keval.execute.admission import Admission
from keval.execute.bringup.description import RunDescriber, kept_blobs
from keval.execute.bringup.preflight import preflight
from keval.execute.local import Local
from keval.execute.models.exchange import endpoints_by_model
from keval.execute.models.prices import find_prices
from keval.execute.outbox import RunOutbox
from keval.plan.plan import Plan
from keval.records.manifest import Manifest, Rates
from keval.records.trial import Sample, Trial, TrialKey
from keval.run.active_run import ActiveRun, BroughtUp, RunStart
from keval.run.conclusion import PlainSummary, Summary, conclude, sealed
from keval.score.backlog import UNSCORED, Backlog, late_judges
from keval.score.scoring import ScoredTrial, rate_agents, rubric_digest, scorer_digests
from keval.seams import registry
from keval.seams.distribution import CrewExecutor, Job
from keval.seams.traffic import recorder
from keval.store.journal import Journal
from keval.store.run import Run
from keval.store.scores import ScoringSpec
from keval.store.writer import RunWriter

_RECORDED_AT_ONCE = 64
"""Trials at once if all answers are recorded: no model is called, and keval waits only for the disk."""


async def bring_up(
    start: RunStart, *, recorded: bool = False, before: Manifest | None = None, done: Collection[TrialKey] = ()
) -> BroughtUp:
    """Start what the plan needs, and find what models cost.

    Of a run that goes on, `before` is the manifest, and `done` are the trials that are not run again. Raises
    PreflightError.
    """
    plan, traffic = start.plan, recorder(start.redact) if recorded else None
    ready = await preflight(
        plan,
        start.scope,
        start.redact,
        start.hooks,
        done=done,
        trials_elsewhere=isinstance(plan.executor.plugin, CrewExecutor),
        traffic=traffic,
        limits=start.limits,
    )
    return BroughtUp(ready, find_prices(plan.evaluation, plan.askers, ready.endpoints, before))


async def freeze(start: RunStart, writer: RunWriter, samples: Sequence[Sample]) -> dict[str, Sample]:
    """Write the samples of a new run, with what hook plugins know of them; returns those that hold a secret, by id.

    Agents are asked these as the dataset has them, while scorers read what is written. Raises PreflightError, RunError.
    """
    with writer.freezing(start.redact) as write:
        return await _write_samples(start, samples, write)


async def add_samples(run: ActiveRun, samples: Sequence[Sample]) -> None:
    """Write further samples of a run that goes on, as `freeze` does. Raises PreflightError, RunError."""
    with run.writer.adding(run.redact) as write:
        run.samples |= await _write_samples(run.start, samples, write)


async def _write_samples(
    start: RunStart, samples: Sequence[Sample], write: Callable[[Sample], bool]
) -> dict[str, Sample]:
    # Samples only pass through, but for those that hold a secret: a dataset may be larger than memory.
    with_facts = start.hooks.with_facts(samples, start.plan.evaluation.execution.max_concurrent)
    return {sample.id: sample async for sample in with_facts if write(sample)}


def describe(
    start: RunStart,
    writer: RunWriter,
    up: BroughtUp,
    plan: Plan,
    before: Manifest | None = None,
    *,
    asked: Mapping[str, Sample] | None = None,
) -> ActiveRun:
    """Make a run of a plan that is up, with its manifest, which is not written yet.

    If it goes on, scorers grade as often as in the manifest `before`. `asked` are the samples that `freeze` returned.
    """
    agents = {agent.label: agent.characteristics for agent in plan.agents}
    describer = _describer(start, up, agents, before)
    manifest = describer.begun(plan, up.ready, writer.run.id, start.at)
    earlier, starts = (0.0, ()) if before is None else (before.elapsed, before.server_starts)
    run = ActiveRun(start, writer, up.ready, describer.spec, manifest, {**(asked or {})}, earlier, starts)
    run.protocols.update(before.protocols if before is not None else {})
    run.count_starts()
    run.hooks.step("keval_run_described", run=run)
    return run


def describe_again(
    start: RunStart, writer: RunWriter, up: BroughtUp, before: Manifest, judge_repetitions: int | None = None
) -> ActiveRun:
    """Make a run of a finished one, with the scorers in the manifest. They grade as often as before, or so often."""
    agents = {label: agent.characteristics for label, agent in before.agents.items()}
    describer = _describer(start, up, agents, before, judge_repetitions)
    run = ActiveRun(start, writer, up.ready, describer.spec, describer.scored_again(before))
    run.hooks.step("keval_run_described", run=run)
    return run


async def complete(run: ActiveRun, plan: Plan, *, done: Collection[TrialKey] = (), missing: bool = False) -> Summary:
    """Do all that is left of a run that is described: run the trials that are not `done`, score and summarise.

    With `missing`, only scores that are lacking are made. Raises RunError, and StoppedError when the run was asked to
    stop while trials were run.
    """
    run.hooks.step("keval_run_begins", run=run)
    with keep_recording(run):
        begin(run)
        written = run.run  # one for all steps, as it keeps the samples that it has read
        try:
            await execute_and_score(run, written, plan, done, missing=missing)
            return summarise(run)
        except BaseException:
            with suppress(RunError):  # what ended the work is told, and not that its time could not be kept
                run.writer.write_manifest(attrs.evolve(run.run.manifest, elapsed=run.elapsed))
            raise


def begin(run: ActiveRun) -> None:
    """Write what a run is made of, and tell hook plugins that it begins or goes on. Raises RunError."""
    if blobs := kept_blobs(run.ready, run.plan.tasks, run.redact):
        run.writer.write_blobs(blobs)
    run.writer.write_manifest(run.manifest)
    run.hooks.announce("keval_run_started", directory=run.writer.path, manifest=run.manifest)
    watch_spending(run)


@contextmanager
def keep_recording(run: ActiveRun) -> Iterator[None]:
    """Add to the recording of the run while the block runs, if it is recorded. Raises RunError."""
    traffic = run.ready.exchange.traffic
    if run.manifest.recording is None or traffic is None:
        yield
        return
    with traffic.writing(run.writer.path, endpoints_by_model(run.plan.askers, run.ready.endpoints)) as run.recording:
        yield


def watch_spending(run: ActiveRun) -> None:
    """Count what the run uses up, with what it has so far, and tell hook plugins how endpoints keep up.

    Raises RunError.
    """
    # Only a run that has a budget imports what counts its use.
    if (budget := run.start.budget) != Budget():
        run.run_budget = registry.load(registry.find("keval.meters", "budget")).of(run.run, budget, run.manifest)
    run.start.limits.watchers.append(run.tell_endpoint)


async def execute_and_score(
    run: ActiveRun, written: Run, plan: Plan, done: Collection[TrialKey] = (), *, missing: bool = False
) -> None:
    """Run the trials that are not `done`, and score them as they finish; then score all that is left.

    Raises RunError, StoppedError.
    """
    late = late_judges(plan.scorers.judges, plan.agents, run.ready.endpoints, run.start.budget)
    with _scoring(run, written, missing=missing, late=late) as backlog:
        await run.hooks.awaited_step("keval_scoring_began", run=run, late=late)
        if run.has_ended is not None:
            await backlog.score_left(written.trials_as_finished())  # as questions are looked at in their order
        told = await _execute(run, written, plan, done, backlog)
        # An endpoint that was lost while trials ran may have come back.
        run.ready.exchange.try_again("judge", backlog.down)
        if run.crew is not None and backlog.down:
            await run.crew.reopen()
        await backlog.score_left(written.trials_as_finished())
        await run.hooks.awaited_step("keval_trials_done", run=run, missing=missing)
        _end(run, told, run.elapsed)


async def score(run: ActiveRun, *, missing: bool = False) -> None:
    """Score all trials of a finished run; with `missing`, only make the scores that it lacks. Raises RunError."""
    written = run.run
    with _scoring(run, written, missing=missing) as backlog:
        await backlog.score(written.trials_as_finished())
        await run.hooks.awaited_step("keval_trials_done", run=run, missing=missing)
        _end(run, "", run.manifest.elapsed)


def summarise(run: ActiveRun) -> Summary:
    """Summarise the trials and scores on disk, and finish the run. Raises RunError."""
    told = run.hooks.step("keval_run_summarised", run=run)
    parts = {name: part for each in told for name, part in (each or {}).items()}
    return finish(run, conclude(run.run, parts, run.start.options.given))


def finish(run: ActiveRun, summary: Summary) -> Summary:
    """Write the summary of a run, and tell hook plugins that it is finished. Raises RunError."""
    if not isinstance(summary, PlainSummary):  # which is counted in no time
        run.writer.write_summary(summary)
    # Last, as the seal has a digest of the summary, too.
    run.writer.write_manifest(sealed(run.run, run.manifest))
    run.hooks.announce("keval_run_finished", directory=run.writer.path, summary=summary)
    return summary


async def _execute(run: ActiveRun, written: Run, plan: Plan, done: Collection[TrialKey], backlog: Backlog) -> str:
    """Run the trials that are not `done`, and score them as they finish; returns why trials were left out, if any."""
    execution, stop = plan.evaluation.execution, run.start.options.stop
    count = sum(key not in done for key in plan.trials()) if done else plan.trial_count
    admission = Admission(
        (key for key in plan.trials() if key not in done),
        stop,
        run.run_budget,
        None if execution.max_failures is None else failure_limit(execution.max_failures, count),
        run.trial_begins,
    )
    if run.has_ended is not None and run.start.backend.is_live:
        admission.ended, admission.behind = run.has_ended, backlog.is_behind
    worker = run.start.backend.worker(plan, run.ready, Rates.of(run.manifest))
    samples, recording = written.samples, run.recording
    chosen = plan.executor.plugin
    # What is played is played here, whatever runs live trials.
    executor = run.crew or (Local() if isinstance(chosen, CrewExecutor) else chosen)
    async with (
        backlog.as_they_finish() as submit,
        Journal(written.trials_file, recording.append if recording else None, written.index_file) as journal,
    ):

        def entry(trial: Trial) -> int:
            run.trial_ends(trial)
            return written.ranking.entry(trial)

        outbox = RunOutbox(run.writer, journal, run.redact, run.hooks, admission, submit, entry)
        # Another job runs what could not begin in the one before: since then trials cost less than was reserved for
        # them, or were scored.
        recorded = all(agent.prerecorded for agent in plan.agents)
        while True:
            job = Job(
                manifest=run.manifest,
                keys=admission.admitted(),
                count=count,
                # Agents are asked with the secrets that the dataset has; the run has none of them.
                sample=lambda name: run.samples.get(name) or samples.named(name),
                worker=worker,
                outbox=outbox,
                max_concurrent=_RECORDED_AT_ONCE if recorded else execution.max_concurrent,
            )
            await stop.run(executor.execute(job), execution.grace_seconds)
            if admission.behind():
                await stop.run(backlog.catch_up(), execution.grace_seconds)
            if not admission.waits:
                return admission.close()


@contextmanager
def _scoring(run: ActiveRun, written: Run, *, missing: bool, late: Collection[str] = ()) -> Iterator[Backlog]:
    """Yield what scores trials; the scores replace earlier ones when the block ends."""
    trials = written.known_trials
    with written.scores_file.scoring(run.spec, trials, missing=missing) as scores, run.grader(scores.lacks) as grader:

        def keep(scored: ScoredTrial, late: bool) -> None:
            lines = run.write_scores(scores, scored)
            run.hooks.announce("keval_trial_scored", trial=scored.trial, scores=lines, late=late)

        at_once = run.plan.evaluation.execution.max_concurrent
        left = bytearray([UNSCORED]) * len(trials)
        all_at_once = run.has_ended is not None
        backlog = Backlog(grader, written.read_trial, keep, scores.note, at_once, {*late}, left, all_at_once)
        backlog.lost = lambda judge, why: run.tell_endpoint(judge, None, False, why)
        yield backlog


def _end(run: ActiveRun, told: str, elapsed: float | None) -> None:
    """Write what the manifest says in the end. Scores count afterwards, so that none is by a scorer that it lacks."""
    if run.recording is not None:
        run.recording.append(b"")  # before the scores of these judgements count
    ended = run.hooks.step("keval_run_ending", run=run)
    told = "; ".join(filter(None, (*ended, told, run.run_budget.told())))
    run.conclude(told, elapsed)


def _describer(
    start: RunStart,
    up: BroughtUp,
    agents: Mapping[str, Mapping[str, Any]],
    before: Manifest | None,
    judge_repetitions: int | None = None,
) -> RunDescriber:
    """Settle what is scored and how often, and describe both.

    `agents` are their characteristics, by label. Judges grade so often, or else as in the manifest `before`.
    """
    plan, ready, scorers, execution = start.plan, up.ready, start.plan.scorers, start.plan.evaluation.execution
    spec = ScoringSpec(
        scorer_digests(scorers, ready.endpoints, execution.seed),
        scorers.repetitions(judge_repetitions or execution.judge_repetitions, None if judge_repetitions else before),
    )
    # By digest, as a rubric of one name may have said something else to another judge.
    rubrics = {rubric_digest(rubric): rubric for rubric in (scorers.rubrics if scorers.judges else ())}
    ratings = rate_agents(scorers, agents)
    return RunDescriber(plan.evaluation, scorers, ready.endpoints, spec, rubrics, ratings, up.prices, start.redact)
