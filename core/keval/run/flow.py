"""The flow of keval: a plan is brought up and executed, its trials are scored, and the scores are summarised.

Each command takes the steps that it needs, in their order: a new run all of them, a run that goes on those for what it
lacks, and a finished run that is scored again those without agents.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from keval.errors import RunError
from keval.plan.plan import Plan, ScoringPlan
from keval.run import steps
from keval.run.active_run import ActiveRun, RunOptions, RunStart
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
    async with RunStart.open(plan, options) as start:
        # First, as it raises where the package of such workers is missing, before a server is started.
        open_crew = _crew_opener(plan)
        up = await steps.bring_up(start, recorded=options.record)
        writer = start.create(root)
        asked = await steps.freeze(start, writer, plan.samples)
        async with start.writing(writer):
            run = steps.describe(start, writer, up, plan, asked=asked)
            if options.record:
                run.record_from(start.at.isoformat(timespec="seconds"))
            async with open_crew(run, True):
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
    async with RunStart.open(plan, options) as start:
        writer = RunWriter(earlier.path)
        async with start.writing(writer):
            before, frozen = writer.run.manifest, writer.run.samples
            # The command has looked already, but not while it kept other processes from writing.
            check_resumable(earlier.path, before, extended=resumption.extended)
            recorded = options.record or before.recording is not None
            done = writer.run.known_trials
            looked_at = len(frozen.ids) if len(done) >= before.trials else None
            done = done.answered if resumption.retry_failed else done
            up = await steps.bring_up(start, recorded=recorded, before=before, done=done)
            del done  # which may be large
            run = steps.describe(attrs.evolve(start, at=datetime.now(UTC)), writer, up, plan, before)
            new, changed = resumption.compare(before, run.manifest, frozen, plan.samples, run.redact)
            if changed and not resumption.force:
                raise RunError(resumption.refusal(earlier.path, changed))
            # Before the files change: cut off in between, a sealed run would seem to be changed by somebody else.
            run.writer.write_manifest(before := unsealed(run.run))
            run.samples |= resumption.originals(frozen, plan.samples, run.redact)
            if new:
                await steps.add_samples(run, new)
            retried = set_failures_aside(run.run) if resumption.retry_failed else 0
            run.manifest = resumption.manifest(before, run.manifest, retried, changed, looked_at)
            if options.record and run.manifest.recording is None:
                run.record_from(run.manifest.resumed[-1].at)
            async with _crew_opener(plan)(run, False):
                # Trials are looked up anew, as failures may have been set aside.
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
    async with RunStart.open(plan, options or RunOptions()) as start:
        writer = RunWriter(finished.path)
        async with start.writing(writer):
            before = writer.run.manifest
            up = await steps.bring_up(start, recorded=before.recording is not None, before=before)
            # Written when the pass ends: until then the earlier scores count, by the scorers of the earlier manifest.
            run = steps.describe_again(start, writer, up, unsealed(writer.run), judge_repetitions)
            steps.watch_spending(run)
            async with _crew_opener(plan)(run, False):
                with steps.keep_recording(run):
                    await steps.score(run, missing=missing)
                    return run.run, steps.summarise(run)


def _crew_opener(plan: ScoringPlan) -> Callable[[ActiveRun, bool], AbstractAsyncContextManager[None]]:
    """Return what brings up workers elsewhere for a block, if the executor has such. Raises PluginError.

    It is given the run, and whether that is new.
    """
    executor = plan.executor.plugin
    if not isinstance(executor, CrewExecutor):
        return lambda run, is_new: nullcontext()
    opener: CrewOpener = registry.load(registry.find("keval.crews", "remote"))
    return lambda run, is_new: opener(run, executor, is_new=is_new)
