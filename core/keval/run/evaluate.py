"""Evaluating: a plan becomes a run on disk; a run is scored again."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pluggy

from keval.config.evaluation import Evaluation
from keval.errors import RunError
from keval.interfaces import Closable, Judge
from keval.records import Trial
from keval.run.execute import execute
from keval.run.hooks import hook_manager, with_facts
from keval.run.journal import Journal
from keval.run.keeper import Keeper
from keval.run.lines import trial_line
from keval.run.manifest import make_manifest, rescored
from keval.run.plan import Plan, Scorers
from keval.run.preflight import preflight, prepare, resolve_models, with_endpoints
from keval.run.score import ScoredTrial, score_trials
from keval.run.secrets import Scrubber
from keval.run.store import RunDirectory
from keval.stats.summary import summarise

__all__ = ["Watchers", "rescore", "run_plan"]

Watchers = Sequence[tuple[str, object]]
"""Further hook plugins by name, such as a progress display."""


async def run_plan(plan: Plan, root: Path, watchers: Watchers = ()) -> RunDirectory:
    """Run a plan, score it and write its summary; nothing is written before preflight has passed.

    Raises PreflightError, and RunError when the directory cannot be written any more.
    """
    hooks = hook_manager([*((item.label, item.plugin) for item in plan.hooks), *watchers])
    started = datetime.now(UTC)
    async with _keeping() as keeper:
        ready = await preflight(plan, keeper)
        samples = await with_facts(hooks, plan.samples, plan.evaluation.execution.max_concurrent)
        run = RunDirectory.create(root, plan.evaluation.name, started)
        with _writing(run):
            run.write_samples(iter(samples))
            manifest = make_manifest(plan, ready, run.id, started)
            run.write_manifest(manifest)
            hooks.hook.keval_run_started(directory=run.path, manifest=manifest)
            scrubbed = Scrubber.of(plan.evaluation, ready.endpoints.values())
            async with _closing(ready.agents.values()), Journal(run.trials_file) as journal:

                async def keep(trial: Trial) -> None:
                    await journal.append(scrubbed(trial_line(trial)))
                    hooks.hook.keval_trial_finished(trial=trial)

                await execute(plan, ready, samples, keep)
            judges = {item.label: with_endpoints(item, ready.endpoints) for item in plan.scorers.judges}
            await _score(run, plan.evaluation, plan.scorers, judges, hooks)
    return run


async def rescore(run: RunDirectory, evaluation: Evaluation, scorers: Scorers, watchers: Watchers = ()) -> None:
    """Score a finished run again with these scorers, in place of what they scored before; no agent is called.

    Raises PreflightError: a judge's model cannot be reached.
    """
    hooks = hook_manager(watchers)
    async with _keeping() as keeper:
        endpoints = await resolve_models(scorers.judges, evaluation.execution.seed, keeper)
        with _writing(run):
            run.write_manifest(rescored(run.manifest(), scorers))
            judges = {item.label: with_endpoints(item, endpoints) for item in scorers.judges}
            await _score(run, evaluation, scorers, judges, hooks)


async def _score(
    run: RunDirectory,
    evaluation: Evaluation,
    scorers: Scorers,
    judges: Mapping[str, Judge],
    hooks: pluggy.PluginManager,
) -> None:
    again = scorers.scales()
    with run.scoring(lambda line: line.scorer in again) as write:

        def keep(scored: ScoredTrial) -> None:
            for line in scored.lines:
                write(line)
            values = {line.metric: line.score.value for line in scored.lines}
            hooks.hook.keval_trial_scored(trial=scored.trial, scores=values)

        async with _closing(judges.values()):
            await prepare(judges.values())
            await score_trials(run.trials(), scorers, judges, evaluation.execution, keep)
    summary = summarise(run.manifest(), run.trials(), run.scores())
    run.write_summary(summary)
    hooks.hook.keval_run_finished(directory=run.path, summary=summary)


@contextmanager
def _writing(run: RunDirectory) -> Iterator[None]:
    """Explain why a run directory cannot be written, even where a task group wraps it."""
    try:
        yield
    except (OSError, ExceptionGroup) as error:
        first: Exception = error
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        if isinstance(first, OSError):
            message = f"{run.path} cannot be written: {first}; what was written before is kept"
            raise RunError(message) from error
        raise


@asynccontextmanager
async def _keeping() -> AsyncIterator[Keeper]:
    keeper = Keeper()
    try:
        yield keeper
    finally:
        for error in await keeper.close():
            # The results are safe on disk; what did not end well is said and not raised.
            warnings.warn(f"while closing: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=1)


@asynccontextmanager
async def _closing(plugins: Iterable[object]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for plugin in plugins:
            if isinstance(plugin, Closable):
                await plugin.aclose()
