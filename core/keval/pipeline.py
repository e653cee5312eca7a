"""The flow of keval: a plan is brought up and executed, its trials are scored, and the scores are summarised.

Every trial is on disk before it counts as done, and scoring reads the trials from there. So a finished run can be
scored again, and the same steps do both.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import attrs

from keval.config.evaluation import Evaluation, Execution
from keval.errors import RunError
from keval.execute.describe import describe_run, describe_scoring
from keval.execute.exchange import ModelExchange
from keval.execute.outbox import RunOutbox
from keval.execute.preflight import begin_judges, preflight
from keval.execute.resources import ResourceScope
from keval.execute.stopping import Stop
from keval.execute.worker import PlanWorker
from keval.infrastructure import Job
from keval.interfaces import Judge
from keval.manifest import Manifest
from keval.models import Endpoint
from keval.plan.build import hook_plugins
from keval.plan.hooks import HookPlugin, Hooks
from keval.plan.plan import Plan, ResolvedPlugin, Scorers, ScoringPlan, models_of
from keval.score.digest import rubric_digest, scorer_digests
from keval.score.scoring import ScoredTrial, score_trials
from keval.scores import Rubric
from keval.stats.summarise import Summariser
from keval.store.journal import Journal
from keval.store.redact import Redactor
from keval.store.run import Run
from keval.store.scores_file import ScoringSpec
from keval.store.writer import RunWriter
from keval.summary import Summary

__all__ = ["Watchers", "rescore", "run_plan"]

Watchers: TypeAlias = Sequence[tuple[str, object]]
"""Further hook plugins by name, such as a progress display."""

_RECORDED_AT_ONCE = 64
"""Trials at once if all answers are recorded: no model is called, and keval waits only for the disk."""


async def run_plan(plan: Plan, root: Path, watchers: Watchers = (), stop: Stop | None = None) -> tuple[Run, Summary]:
    """Run a plan, score it and write its summary; nothing is written before preflight has passed.

    Raises PreflightError, RunError when the run's directory cannot be written, and StoppedError when `stop` was asked
    while trials were run.
    """
    hooks, stop = _hooks(plan.hooks, watchers), stop or Stop()
    started = datetime.now(UTC)
    execution = plan.evaluation.execution
    async with _resources() as scope:
        ready = await preflight(plan, scope)
        writer = RunWriter.create(root, plan.evaluation.folder, started)
        with writer.freezing() as freeze:
            async for sample in hooks.with_facts(plan.samples, execution.max_concurrent):
                freeze(sample)
        with writer.locked(), _unwrapped():
            rubrics = _rubrics(plan.scorers)
            spec = ScoringSpec(
                scorer_digests(plan.scorers, ready.endpoints, execution.seed),
                plan.scorers.repetitions(execution.judge_repetitions),
            )
            planned = [item.plugin for item in (*plan.agents, *plan.scorers.judges)]
            endpoints = _endpoints(ready.endpoints, planned, ready.agents.values(), ready.judges.values())
            redact = Redactor.of(plan.evaluation, endpoints)
            manifest = describe_run(plan, ready, spec, writer.run.id, started, rubrics=rubrics, redact=redact)
            writer.write_manifest(manifest)
            hooks.announce("keval_run_started", directory=writer.path, manifest=manifest)
            async with Journal(writer.run.trials_file) as journal:
                job = Job(
                    manifest=manifest,
                    keys=stop.until(plan.trials()),
                    count=plan.trial_count,
                    sample=writer.run.samples.named,
                    worker=PlanWorker(plan, ready),
                    outbox=RunOutbox(writer, journal, redact, hooks),
                    max_concurrent=_max_concurrent(plan),
                )
                await stop.run(plan.executor.plugin.execute(job), execution.grace_seconds)
            scores = _Scoring(writer, execution, plan.scorers, ready.judges, ready.exchange, spec, hooks, redact)
            return writer.run, await scores.score(manifest)


async def rescore(
    run: Run,
    evaluation: Evaluation,
    scoring: ScoringPlan,
    watchers: Watchers = (),
    *,
    missing: bool = False,
    judge_repetitions: int | None = None,
) -> Summary:
    """Score a finished run by a scoring plan, in place of what its scorers scored before; no agent is called.

    With `missing`, only scores are made that there are none of, or that failed. A pass of the same scorers that was
    interrupted goes on. A judge grades as often as before, unless `judge_repetitions` says otherwise.

    Raises PreflightError: a judge's model cannot be reached, or a judge cannot begin; and RunError: another process is
    writing to the run.
    """
    scorers = scoring.scorers
    hooks = _hooks(scoring.hooks, watchers)
    execution = evaluation.execution
    async with _resources() as scope:
        judges, endpoints, exchange = await begin_judges(scorers.judges, scoring.middleware, execution, scope)
        writer = RunWriter(run.path)
        with writer.locked(), _unwrapped():
            before = writer.run.manifest
            earlier = {entry.scorer: entry.repetitions for entry in before.scorers}
            repetitions = scorers.repetitions(
                judge_repetitions or execution.judge_repetitions, None if judge_repetitions else earlier
            )
            spec = ScoringSpec(scorer_digests(scorers, endpoints, execution.seed), repetitions)
            planned = [item.plugin for item in scorers.judges]
            redact = Redactor.of(evaluation, _endpoints(endpoints, planned, judges.values()))
            rubrics = _rubrics(scorers)
            manifest = describe_scoring(before, evaluation, scorers, endpoints, spec, rubrics=rubrics, redact=redact)
            scores = _Scoring(writer, execution, scorers, judges, exchange, spec, hooks, redact)
            return await scores.score(manifest, missing=missing)


@attrs.frozen
class _Scoring:
    """A scoring pass over a run."""

    writer: RunWriter
    execution: Execution
    scorers: Scorers
    judges: Mapping[str, Judge]
    exchange: ModelExchange
    spec: ScoringSpec
    hooks: Hooks
    redact: Redactor

    async def score(self, manifest: Manifest, *, missing: bool = False) -> Summary:
        """Make the scores and write them, the manifest that tells of them, and the summary."""
        run, summariser = self.writer.run, Summariser(manifest)
        with run.scores_file.scoring(self.spec, missing=missing) as scoring:

            def keep(scored: ScoredTrial) -> None:
                if scored.written:
                    scoring.write(b"".join(self.redact(line) + b"\n" for line in scored.written))
                summariser.add_trial(scored.trial)
                summariser.add_scores(scored.lines)
                self.hooks.announce("keval_trial_scored", trial=scored.trial, scores=scored.lines)

            await score_trials(
                run.trials(),
                self.scorers,
                self.judges,
                self.execution,
                keep,
                spec=self.spec,
                lacks=scoring.lacks,
                exchange=self.exchange,
            )
            # Before the scores replace earlier ones, so that there is no score by a scorer that the manifest lacks.
            self.writer.write_manifest(manifest)
        others = {entry.scorer for entry in manifest.scorers} - self.spec.digests.keys()
        for line in run.scores_file.read() if others or scoring.had else ():
            if line.scorer in others or scoring.had_already(line):
                summariser.add_scores([line])
        summary = summariser.summary()
        self.writer.write_summary(summary)
        self.hooks.announce("keval_run_finished", directory=run.path, summary=summary)
        return summary


def _max_concurrent(plan: Plan) -> int:
    """Return how many trials may run at once."""
    if all(agent.prerecorded for agent in plan.agents):
        return _RECORDED_AT_ONCE
    return plan.evaluation.execution.max_concurrent


def _rubrics(scorers: Scorers) -> dict[str, Rubric]:
    """Return what judges grade by, by digest: a rubric of one name may have said something else to another judge."""
    return {rubric_digest(rubric): rubric for rubric in (scorers.rubrics if scorers.judges else ())}


def _endpoints(endpoints: Mapping[str, Endpoint], *plugins: Iterable[object]) -> list[Endpoint]:
    """Return every endpoint that a run asks: those that providers found, and those that plugins know themselves.

    Behind a proxy a plugin has another key than the one that it was constructed with.
    """
    models = (model for group in plugins for plugin in group for model in models_of(plugin).values())
    return [*endpoints.values(), *(model.endpoint for model in models if model.endpoint is not None)]


def _hooks(plugins: Sequence[ResolvedPlugin], watchers: Watchers) -> Hooks:
    return Hooks.of([*hook_plugins(plugins), *(HookPlugin(name, plugin) for name, plugin in watchers)])


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
async def _resources() -> AsyncIterator[ResourceScope]:
    scope = ResourceScope()
    try:
        yield scope
    finally:
        for error in await scope.close():
            # The results are safe on disk; what did not end well is a warning and not an error.
            warnings.warn(f"while closing: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=1)
