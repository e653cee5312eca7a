"""Evaluating: a plan becomes a run on disk; a run is scored again."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pluggy

from keval.config.evaluation import Evaluation, Execution
from keval.errors import RunError
from keval.interfaces import Judge
from keval.models import Endpoint
from keval.records import Failure, Trial
from keval.run.digest import scorer_digests
from keval.run.execute import execute
from keval.run.hooks import announce, hook_manager, with_facts
from keval.run.journal import Journal
from keval.run.keeper import Keeper
from keval.run.lines import trial_line
from keval.run.manifest import make_manifest, rescored
from keval.run.plan import Plan, Planned, Scorers, models_of
from keval.run.preflight import begin, preflight, resolve_models
from keval.run.score import ScoredTrial, score_trials
from keval.run.scores_file import Wanted
from keval.run.secrets import Scrubber
from keval.run.store import RunDirectory
from keval.stats.summary import Summariser

__all__ = ["Watchers", "rescore", "run_plan"]

Watchers = Sequence[tuple[str, object]]
"""Further hook plugins by name, such as a progress display."""

Summary: TypeAlias = Mapping[str, Any]
"""What `keval.stats.summary` makes of a run."""


async def run_plan(plan: Plan, root: Path, watchers: Watchers = ()) -> tuple[RunDirectory, Summary]:
    """Run a plan, score it and write its summary; nothing is written before preflight has passed.

    Returns the run's directory and summary. Raises PreflightError, and RunError when the directory cannot be written.
    """
    hooks = _hooks(plan.hooks, watchers)
    started = datetime.now(UTC)
    async with _keeping() as keeper:
        ready = await preflight(plan, keeper)
        run = RunDirectory.create(root, plan.evaluation.folder, started)
        with run.freezing() as keep_sample:
            async for sample in with_facts(hooks, plan.samples, plan.evaluation.execution.max_concurrent):
                keep_sample(sample)
        with run.locked():
            execution = plan.evaluation.execution
            wanted = Wanted(
                scorer_digests(plan.scorers, ready.judges, execution.seed),
                plan.scorers.repetitions(execution.judge_repetitions),
            )
            scrubbed = Scrubber.of(plan.evaluation, _endpoints(ready.endpoints, ready.agents, ready.judges))
            manifest = make_manifest(plan, ready, wanted, run.id, started, scrubbed=scrubbed)
            run.write_manifest(manifest)
            announce(hooks.hook.keval_run_started, directory=run.path, manifest=manifest)
            scoring = _Scoring(run, execution, plan.scorers, ready.judges, wanted, hooks, scrubbed)
            with _unwrapped():
                async with Journal(run.trials_file) as journal:

                    async def keep(trial: Trial) -> None:
                        await journal.append(scrubbed(_line(trial)))
                        announce(hooks.hook.keval_trial_finished, trial=trial)

                    await execute(plan, ready, run.samples(), keep)
                return run, await scoring.score(manifest)


async def rescore(
    run: RunDirectory,
    evaluation: Evaluation,
    scorers: Scorers,
    plugins: Sequence[Planned] = (),
    watchers: Watchers = (),
    *,
    missing: bool = False,
    judge_repetitions: int | None = None,
) -> Summary:
    """Score a finished run again with these scorers, in place of what they scored before; no agent is called.

    With `missing`, only scores are made that there are none of, or that failed. A pass of the same scorers that was cut
    short goes on. A judge is asked as often as before, unless `judge_repetitions` says otherwise.

    Returns the new summary. Raises PreflightError: a judge's model cannot be reached, or a judge cannot begin; and
    RunError: another process is writing to the run.
    """
    hooks = _hooks(plugins, watchers)
    async with _keeping() as keeper:
        endpoints = await resolve_models(scorers.judges, evaluation.execution.seed, keeper)
        judges = await begin(scorers.judges, endpoints, keeper)
        with run.locked(), _unwrapped():
            before = run.manifest()
            earlier = {(entry["metric"], entry["judge"]): int(entry["repetitions"]) for entry in before["scorers"]}
            repetitions = (
                scorers.repetitions(judge_repetitions)
                if judge_repetitions
                else scorers.repetitions(evaluation.execution.judge_repetitions, earlier)
            )
            wanted = Wanted(scorer_digests(scorers, judges, evaluation.execution.seed), repetitions)
            scrubbed = Scrubber.of(evaluation, _endpoints(endpoints, judges))
            manifest = rescored(before, evaluation, scorers, endpoints, wanted, scrubbed=scrubbed)
            scoring = _Scoring(run, evaluation.execution, scorers, judges, wanted, hooks, scrubbed)
            return await scoring.score(manifest, missing=missing)


@attrs.frozen
class _Scoring:
    """A scoring pass over a run."""

    run: RunDirectory
    execution: Execution
    scorers: Scorers
    judges: Mapping[str, Judge]
    wanted: Wanted
    hooks: pluggy.PluginManager
    scrubbed: Scrubber

    async def score(self, manifest: Mapping[str, Any], *, missing: bool = False) -> Summary:
        """Make the scores and write them, the manifest that tells of them, and the summary."""
        run, summariser = self.run, Summariser(manifest)
        with run.scores_file.scoring(self.wanted, missing=missing) as scoring:

            def keep(scored: ScoredTrial) -> None:
                if scored.written:
                    scoring.write(b"".join(self.scrubbed(line) + b"\n" for line in scored.written))
                summariser.add_trial(scored.trial)
                summariser.add_scores(scored.lines)
                announce(self.hooks.hook.keval_trial_scored, trial=scored.trial, scores=scored.lines)

            await score_trials(
                run.trials(),
                self.scorers,
                self.judges,
                self.execution,
                keep,
                wanted=self.wanted,
                lacks=scoring.lacks,
            )
            # First, so that what is cut short here lacks scores, and has none that the manifest does not tell of.
            run.write_manifest(manifest)
        others = {(entry["metric"], entry["judge"]) for entry in manifest["scorers"]} - self.wanted.digests.keys()
        for line in run.scores() if others or scoring.had else ():
            if line.scorer in others or scoring.had_already(line):
                summariser.add_scores([line])
        summary = summariser.summary()
        run.write_summary(summary)
        announce(self.hooks.hook.keval_run_finished, directory=run.path, summary=summary)
        return summary


def _endpoints(endpoints: Mapping[str, Endpoint], *plugins: Mapping[str, object]) -> list[Endpoint]:
    """Every endpoint that a run asks: those that providers found, and those that plugins know themselves."""
    models = (model for group in plugins for plugin in group.values() for model in models_of(plugin).values())
    return [*endpoints.values(), *(model.endpoint for model in models if model.endpoint is not None)]


def _hooks(plugins: Sequence[Planned], watchers: Watchers) -> pluggy.PluginManager:
    return hook_manager([*((item.label, item.plugin) for item in plugins), *watchers])


def _line(trial: Trial) -> bytes:
    """A trial as a line; what no line can hold is that trial's failure."""
    try:
        return trial_line(trial)
    except (TypeError, ValueError, RecursionError) as error:
        failure = Failure("agent", "unwritable", f"the transcript cannot be written: {error}")
        return trial_line(attrs.evolve(trial, transcript=None, attempts=(), failure=failure))


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise an explained error as it is, where a task group wraps it."""
    try:
        yield
    except ExceptionGroup as error:
        first: Exception = error
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        if isinstance(first, RunError):
            raise first from None
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
