"""The flow of keval: a plan is brought up and executed, its trials are scored, and the scores are summarised.

Every trial is on disk before it counts as done, and is scored as it stands there, while others run or afterwards. So a
finished run can be scored again, and the same steps do both.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import attrs

from keval.analysis.regression import Regression
from keval.config.evaluation import Evaluation
from keval.config.secrets import learn_config, learn_endpoints
from keval.errors import RunError
from keval.execute.admission import Stop, StoppedError
from keval.execute.bringup.description import describe_scoring
from keval.execute.bringup.preflight import begin_judges, preflight
from keval.execute.bringup.resources import ResourceScope
from keval.execute.bringup.resumption import Resumption, check_resumable
from keval.execute.live import Watching
from keval.execute.models.budget import Meter
from keval.execute.models.endpoints import endpoints_by_model, endpoints_of
from keval.execute.models.prices import find_prices
from keval.execute.working_time import WorkingTime
from keval.plan.build import hook_plugins
from keval.plan.hooks import HookPlugin, Hooks
from keval.plan.plan import Plan, ResolvedPlugin, ScoringPlan
from keval.recording.writer import RecordingWriter
from keval.records.costs import Rates
from keval.records.manifest import RecordingEntry
from keval.records.sample import Sample
from keval.records.summary import Summary
from keval.redaction import Redactor
from keval.run.stages import Running, announce_endpoints, rubrics_of
from keval.score.digest import scorer_digests
from keval.score.stage import Scoring
from keval.store.run import Run
from keval.store.scores import ScoringSpec
from keval.store.writer import RunWriter

Watchers: TypeAlias = Sequence[tuple[str, object]]
"""Further hook plugins by name, such as a progress display."""


async def run_plan(
    plan: Plan,
    root: Path,
    watchers: Watchers = (),
    *,
    redactor: Redactor | None = None,
    stop: Stop | None = None,
    regression: Regression | None = None,
    record: bool = False,
) -> tuple[Run, Summary]:
    """Run a plan, score it and write its summary; nothing is written before preflight has passed.

    `redactor` learns the secrets of the config, and the keys of models. `regression` holds the run against another.
    With `record`, the run keeps its traffic with models and servers.

    Raises PreflightError, RunError when the run's directory cannot be written, and StoppedError when `stop` was asked
    while trials were run.
    """
    watching = Watching()
    hooks = hooks_of(plan.hooks, [*watchers, watching.plugin])
    started, working = datetime.now(UTC), WorkingTime()
    redact = redactor or Redactor()
    learn_config(redact, plan.evaluation)
    async with resources() as scope:
        ready = await preflight(plan, scope, redact, hooks, recorded=record)
        prices = find_prices(plan.evaluation, plan.askers, ready.endpoints)
        samples: dict[str, Sample] = {}
        writer = RunWriter.create(root, plan.evaluation.folder, started)
        with writer.freezing(redact) as freeze:
            async for sample in hooks.with_facts(plan.samples, plan.evaluation.execution.max_concurrent):
                if freeze(sample):  # agents are asked what the dataset says, and scorers read what is written
                    samples[sample.id] = sample
        async with writing(writer, watching, hooks, redact):
            running = Running.of(
                plan,
                ready,
                writer,
                hooks=hooks,
                prices=prices,
                redact=redact,
                samples=samples,
                regression=regression,
                begins=watching.begins,
            )
            manifest = running.describe(started)
            if record:
                manifest = attrs.evolve(manifest, recording=RecordingEntry(started.isoformat(timespec="seconds")))
            return writer.run, await running.finish(manifest, working, stop=stop)


async def resume_run(
    run: Run,
    plan: Plan,
    watchers: Watchers = (),
    *,
    resumption: Resumption,
    redactor: Redactor | None = None,
    stop: Stop | None = None,
    regression: Regression | None = None,
    record: bool = False,
) -> Summary:
    """Run the trials of a plan that a run does not have, make the scores that it lacks, and write its summary.

    A run that is recorded goes on so; with `record`, any other one is recorded from now on.

    Raises PreflightError; and RunError: another process is writing to the run, something changed since it began;
    and StoppedError when `stop` was asked while trials were run.
    """
    watching = Watching()
    hooks = hooks_of(plan.hooks, [*watchers, watching.plugin])
    writer, working = RunWriter(run.path), WorkingTime()
    redact = redactor or Redactor()
    learn_config(redact, plan.evaluation)
    async with writing(writer, watching, hooks, redact):
        before, frozen = writer.run.manifest, writer.run.samples
        check_resumable(run.path, before)
        working = attrs.evolve(working, earlier=before.elapsed)
        async with resources() as scope:
            ready = await preflight(plan, scope, redact, hooks, recorded=record or before.recording is not None)
            samples: dict[str, Sample] = {}
            running = Running.of(
                plan,
                ready,
                writer,
                hooks=hooks,
                prices=find_prices(plan.evaluation, plan.askers, ready.endpoints, before),
                redact=redact,
                samples=samples,
                earlier={entry.scorer: entry.repetitions for entry in before.scorers},
                regression=regression,
                begins=watching.begins,
            )
            now = running.describe(datetime.now(UTC))
            new, changed = resumption.compare(before, now, frozen, plan.samples, redact)
            if changed and not resumption.force:
                raise RunError(resumption.refusal(run.path, changed))
            samples |= resumption.originals(frozen, plan.samples, redact)
            if new:
                with writer.adding(redact) as add:
                    async for sample in hooks.with_facts(new, plan.evaluation.execution.max_concurrent):
                        if add(sample):
                            samples[sample.id] = sample
            retried = writer.set_failures_aside() if resumption.retry_failed else 0
            manifest = resumption.manifest(before, now, retried, changed)
            if record and manifest.recording is None:
                manifest = attrs.evolve(manifest, recording=RecordingEntry(manifest.resumed[-1].at))
            done = writer.run.trial_ids()
            return await running.finish(manifest, working, done=done, stop=stop, missing=True)


async def rescore(
    run: Run,
    evaluation: Evaluation,
    scoring: ScoringPlan,
    watchers: Watchers = (),
    *,
    missing: bool = False,
    judge_repetitions: int | None = None,
    redactor: Redactor | None = None,
    regression: Regression | None = None,
) -> Summary:
    """Score a finished run by a scoring plan, in place of what its scorers scored before; no agent is called.

    With `missing`, only scores are made that there are none of, or that failed. A pass of the same scorers that was
    interrupted goes on. A judge grades as often as before, unless `judge_repetitions` says otherwise.

    Raises PreflightError: a judge's model cannot be reached, or a judge cannot begin; and RunError: another process is
    writing to the run.
    """
    scorers = scoring.scorers
    watching = Watching()
    hooks = hooks_of(scoring.hooks, [*watchers, watching.plugin])
    execution = evaluation.execution
    redact = redactor or Redactor()
    learn_config(redact, evaluation)
    async with resources() as scope:
        judges, endpoints, exchange = await begin_judges(
            scorers.judges, scoring.middleware, execution, scope, redact, recorded=run.manifest.recording is not None
        )
        writer = RunWriter(run.path)
        async with writing(writer, watching, hooks, redact):
            before = writer.run.manifest
            earlier = {entry.scorer: entry.repetitions for entry in before.scorers}
            repetitions = scorers.repetitions(
                judge_repetitions or execution.judge_repetitions, None if judge_repetitions else earlier
            )
            spec = ScoringSpec(scorer_digests(scorers, endpoints, execution.seed), repetitions)
            planned = [item.plugin for item in scorers.judges]
            learn_endpoints(redact, endpoints_of(endpoints, planned, judges.values()))
            rubrics = rubrics_of(scorers)
            prices = find_prices(evaluation, scorers.judges, endpoints, before)
            manifest = describe_scoring(
                before, evaluation, scorers, endpoints, spec, rubrics=rubrics, prices=prices, redact=redact
            )
            prerecorded = [label for label, entry in before.agents.items() if entry.recording]
            meter = Meter.of(writer.run, evaluation.budget, Rates.of(manifest), prerecorded)
            announce_endpoints(exchange, hooks)
            with RecordingWriter.of(manifest, writer.path, redact) as recording:
                if recording:
                    recording.begin(endpoints_by_model(scorers.judges, endpoints))
                scores = Scoring(
                    writer,
                    execution,
                    scorers,
                    judges,
                    exchange,
                    spec,
                    hooks,
                    redact,
                    meter,
                    regression,
                    recording,
                )
                return await scores.score(manifest, missing=missing)


def hooks_of(plugins: Sequence[ResolvedPlugin], watchers: Watchers) -> Hooks:
    """Return the hook plugins of a plan, and those that watch the run."""
    return Hooks.of([*hook_plugins(plugins), *(HookPlugin(name, plugin) for name, plugin in watchers)])


@asynccontextmanager
async def writing(writer: RunWriter, watching: Watching, hooks: Hooks, redact: Redactor) -> AsyncIterator[None]:
    """Keep other processes from writing to a run, and tell those who look at it what it does. Raises RunError."""
    with writer.locked(), unwrapped():
        async with watching.telling(writer.path, hooks, redact):
            yield


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise an error that ends a run as it is, where a task group wraps it."""
    try:
        yield
    except ExceptionGroup as error:
        first: Exception = error
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        if isinstance(first, RunError | StoppedError):
            raise first from None
        raise


@asynccontextmanager
async def resources() -> AsyncIterator[ResourceScope]:
    """Hold what a run brings up, and close it at the end; what does not end well is a warning."""
    scope = ResourceScope()
    try:
        yield scope
    finally:
        for error in await scope.close():
            # The results are safe on disk.
            warnings.warn(f"while closing: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=1)
