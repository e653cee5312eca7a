"""The flow of keval: a plan is brought up and executed, its trials are scored, and the scores are summarised.

Each command takes the steps that it needs, in their order: a new run all of them, a run that goes on those for what it
lacks, and a finished run that is scored again those without agents.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from keval.errors import RunError
from keval.plan.plan import Plan, ScoringPlan
from keval.run import steps
from keval.run.active_run import ActiveRun, RunOptions
from keval.run.conclusion import Summary, unsealed
from keval.seams import registry
from keval.seams.distribution import CrewExecutor, CrewOpener
from keval.store.run import Run
from keval.store.writer import RunWriter

if TYPE_CHECKING:
    from keval.run.resumption import Resumption


async def run_plan(plan: Plan, root: Path, options: RunOptions | None = None) -> tuple[Run, Summary]:
    """Run a plan, score it and write its summary; nothing is written before preflight has passed.

    Raises PreflightError, RunError when the run's directory cannot be written, and StoppedError when the run was asked
    to stop while trials were run.
    """
    options = options or RunOptions()
    async with ActiveRun.open(plan, options) as run:
        crew = _crew(run, is_new=True)
        await steps.bring_up(run, recorded=options.record)
        run.create(root)
        await steps.freeze(run, plan.samples)
        async with run.writing():
            steps.describe(run, plan)
            if options.record:
                run.record_from(run.started.isoformat(timespec="seconds"))
            async with crew:
                return run.run, await steps.complete(run, plan)


async def resume_run(
    earlier: Run, plan: Plan, resumption: Resumption, options: RunOptions | None = None
) -> tuple[Run, Summary]:
    """Run the trials of a plan that a run does not have, make the scores that it lacks, and write its summary.

    A run that is recorded goes on so; with the option `record`, any other one is recorded from now on.

    Raises PreflightError; and RunError: another process is writing to the run, something changed since it began;
    and StoppedError when the run was asked to stop while trials were run.
    """
    from keval.run.resumption import check_resumable, set_failures_aside  # only a run that goes on needs it

    options = options or RunOptions()
    async with ActiveRun.open(plan, options) as run:
        run.writer = RunWriter(earlier.path)
        async with run.writing():
            before, frozen = run.run.manifest, run.run.samples
            check_resumable(earlier.path, before, extended=resumption.extended)
            run.earlier = before.elapsed
            recorded = options.record or before.recording is not None
            done = run.run.known_trials
            looked_at = len(frozen.ids) if len(done) >= before.trials else None
            done = done.answered if resumption.retry_failed else done
            await steps.bring_up(run, recorded=recorded, before=before, done=done)
            del done  # which may be large
            run.started = datetime.now(UTC)
            steps.describe(run, plan, before)
            new, changed = resumption.compare(before, run.manifest, frozen, plan.samples, run.redact)
            if changed and not resumption.force:
                raise RunError(resumption.refusal(earlier.path, changed))
            run.writer.write_manifest(before := unsealed(run.run))
            run.samples |= resumption.originals(frozen, plan.samples, run.redact)
            if new:
                await steps.add_samples(run, new)
            retried = set_failures_aside(run.run) if resumption.retry_failed else 0
            run.manifest = resumption.manifest(before, run.manifest, retried, changed, looked_at)
            if options.record and run.manifest.recording is None:
                run.record_from(run.manifest.resumed[-1].at)
            async with _crew(run):
                return run.run, await steps.complete(run, plan, done=run.run.known_trials, missing=True)


async def rescore(
    finished: Run,
    plan: ScoringPlan,
    options: RunOptions | None = None,
    *,
    missing: bool = False,
    judge_repetitions: int | None = None,
) -> tuple[Run, Summary]:
    """Score a finished run by a scoring plan, in place of what its scorers scored before; no agent is called.

    With `missing`, only scores are made that there are none of, or that failed. A pass of the same scorers that was
    interrupted goes on. A judge grades as often as before, unless `judge_repetitions` says otherwise.

    Raises PreflightError: a judge's model cannot be reached, or a judge cannot begin; and RunError: another process is
    writing to the run.
    """
    async with ActiveRun.open(plan, options or RunOptions()) as run:
        run.writer = RunWriter(finished.path)
        async with run.writing():
            before = run.run.manifest
            await steps.bring_up(run, recorded=before.recording is not None, before=before)
            before = unsealed(run.run)
            steps.describe_again(run, before, judge_repetitions)
            steps.watch_spending(run)
            async with _crew(run):
                with steps.keep_recording(run):
                    await steps.score(run, missing=missing)
                    return run.run, steps.summarise(run)


def _crew(run: ActiveRun, *, is_new: bool = False) -> AbstractAsyncContextManager[None]:
    """Return what brings up workers elsewhere for a block, if the executor has such. Raises PluginError at once."""
    if not isinstance(run.plan.executor.plugin, CrewExecutor):
        return nullcontext()
    opener: CrewOpener = registry.load(registry.find("keval.crews", "remote"))
    return opener(run, run.plan.executor.plugin, is_new=is_new)
