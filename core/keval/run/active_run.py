"""The run in progress: what is up for it, the directory that it is written to, and what its manifest says so far."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from keval.config.evaluation import Budget
from keval.config.secrets import learn_config
from keval.errors import PluginWarning, RunError
from keval.execute.admission import Stop, StoppedError
from keval.execute.bringup.description import describe_starts
from keval.execute.bringup.preflight import Ready
from keval.execute.bringup.resources import ResourceScope
from keval.execute.limits import RunLimits
from keval.execute.trial.worker import PlanWorker
from keval.plan.build import hook_plugins, section_hooks
from keval.plan.plan import Plan, ScoringPlan
from keval.records.manifest import Manifest, Rates, RecordingEntry, ServerStartsEntry
from keval.records.models import Price
from keval.records.scores import ScoreLine
from keval.records.trial import Sample, Trial, TrialKey
from keval.redaction import Redactor
from keval.score.backlog import score_events
from keval.score.judging import JudgeRunner, TrialJudge
from keval.score.scoring import Grader, Lacks, ScoredTrial, TrialGrader
from keval.seams import registry
from keval.seams.distribution import Crew, Worker
from keval.seams.hooks import HookPlugin, Hooks, RunWatcher
from keval.seams.traffic import FrameWriter
from keval.seams.use_meter import RunBudget, Unbounded
from keval.store.run import Run
from keval.store.scores import Pass, ScoringSpec
from keval.store.writer import RunWriter

Watchers: TypeAlias = Sequence[tuple[str, object]]
"""Further hook plugins by name, such as a progress display."""


@attrs.frozen
class RunOptions:
    """What a run is given besides its plan.

    `redactor` learns the secrets of the config, and the keys of models. When `stop` is asked, trials in flight may
    finish. With `record`, the run keeps its traffic with models and servers. `given` are the options that packages add.
    """

    watchers: Watchers = ()
    redactor: Redactor = attrs.field(factory=Redactor)
    stop: Stop = attrs.field(factory=Stop)
    record: bool = False
    given: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class RunBackend:
    """What runs and scores the trials of a run; a package may give a run others, as for a replay.

    `worker` makes what runs the trials of a plan that is up, given the rates of models, and `judge` what asks in place
    of a judge's runner. `concluded` returns the manifest as it is when all is scored. Only what `is_live` may end
    early.
    """

    worker: Callable[[Plan, Ready, Rates], Worker] = lambda plan, ready, rates: PlanWorker(plan, ready, rates=rates)
    judge: Callable[[JudgeRunner], TrialJudge] = lambda runner: runner
    concluded: Callable[[Manifest], Manifest] = lambda manifest: manifest
    is_live: bool = True


@attrs.frozen(eq=False)
class RunStart:
    """What is known of the work on a run when it begins. What is brought up for it is held by `scope`.

    `watchers` are those that packages add. `limits` and `budget` are those of the config; a replay has no budget, and a
    `backend` of its own. `at` is when the run began, or goes on, and `clock` what a clock said as the work began.
    """

    plan: ScoringPlan
    options: RunOptions
    hooks: Hooks
    scope: ResourceScope
    watchers: Sequence[RunWatcher]
    budget: Budget
    limits: RunLimits
    backend: RunBackend = RunBackend()
    at: datetime = attrs.field(factory=lambda: datetime.now(UTC))
    clock: float = attrs.field(factory=time.perf_counter)

    @classmethod
    @asynccontextmanager
    async def open(cls, plan: ScoringPlan, options: RunOptions) -> AsyncIterator[RunStart]:
        """Begin to work on a run; what is brought up for it is closed at the end."""
        watching = {f"keval/{each.name}": registry.load(each)() for each in registry.components("keval.run_watchers")}
        watchers = [HookPlugin(name, plugin) for name, plugin in (*options.watchers, *watching.items())]
        hooks = Hooks.of([*section_hooks(plan.evaluation), *hook_plugins(plan.hooks), *watchers])
        # A command has done so before it printed anything; who runs a plan from Python has not.
        learn_config(options.redactor, plan.evaluation)
        scope = ResourceScope()
        try:
            evaluation = plan.evaluation
            limits = RunLimits(evaluation.execution.retry, evaluation.execution.rates)
            yield cls(plan, options, hooks, scope, [*watching.values()], evaluation.budget, limits)
        finally:
            for error in await scope.close():
                # The results are safe on disk.
                warnings.warn(f"while closing: {type(error).__name__}: {error}", PluginWarning, stacklevel=1)
            for watcher in watching.values():
                watcher.ends()

    @property
    def redact(self) -> Redactor:
        """What replaces secrets in all that is written."""
        return self.options.redactor

    def create(self, root: Path) -> RunWriter:
        """Make a directory for a new run. Raises PreflightError when that cannot be made."""
        return RunWriter.create(root, self.plan.evaluation.folder, self.at)

    @asynccontextmanager
    async def writing(self, writer: RunWriter) -> AsyncIterator[None]:
        """Keep other processes from writing to the run, and tell those who look at it what it does. Raises RunError."""
        with self.locked(writer):
            async with AsyncExitStack() as stack:
                for watcher in self.watchers:
                    await stack.enter_async_context(watcher.publishing(writer.path, self.hooks, self.redact))
                yield

    @contextmanager
    def locked(self, writer: RunWriter) -> Iterator[None]:
        """Keep other processes from writing to the run, and stop it if one on another machine does nevertheless.

        An error that ends the run is raised as it is, where a task group wraps it. Raises RunError.
        """
        loop = asyncio.get_running_loop()
        # A lease is renewed in a thread of its own, which tells that it is lost; `ask` belongs to the event loop.
        with writer.locked(lambda: loop.call_soon_threadsafe(self.options.stop.ask)):
            try:
                yield
            except ExceptionGroup as error:
                first: Exception = error
                while isinstance(first, ExceptionGroup):
                    first = first.exceptions[0]
                if isinstance(first, RunError | StoppedError):
                    raise first from None
                raise


@attrs.frozen
class BroughtUp:
    """What a run needs, up and running, and what its models cost, as `find_prices` returns it."""

    ready: Ready
    prices: Mapping[str, Price]


@attrs.define(eq=False)
class ActiveRun:
    """A run in progress, which is up and described. `keval.run.steps.describe` makes one.

    `manifest` is what will be written of it; hook plugins may set another one. `samples` are those that are asked
    otherwise than they are written, by id. `earlier` are the seconds that the run was worked on before, `None` if that
    is unknown, and `starts_before` the processes of servers that it had started. `protocols` are by agent and server.

    The other fields are set while there is such a thing. `recording` writes the traffic that is kept. `crew` are the
    workers elsewhere, of an executor that has some, and `crew_grader` makes scores on them. `has_ended` says whether a
    run that may end early needs no further trial.
    """

    start: RunStart
    writer: RunWriter
    ready: Ready
    spec: ScoringSpec
    manifest: Manifest
    samples: dict[str, Sample] = attrs.field(factory=dict)
    earlier: float | None = 0.0
    starts_before: tuple[ServerStartsEntry, ...] = ()
    protocols: dict[str, Mapping[str, str]] = attrs.field(factory=dict, init=False)
    run_budget: RunBudget = attrs.field(factory=Unbounded, init=False)
    recording: FrameWriter | None = attrs.field(default=None, init=False)
    crew: Crew | None = attrs.field(default=None, init=False)
    crew_grader: Callable[[Lacks], TrialGrader] | None = attrs.field(default=None, init=False)
    has_ended: Callable[[], bool] | None = attrs.field(default=None, init=False)

    @property
    def plan(self) -> ScoringPlan:
        """What is run, or what a finished run is scored by."""
        return self.start.plan

    @property
    def hooks(self) -> Hooks:
        """The hook plugins of the plan and of who watches the run."""
        return self.start.hooks

    @property
    def redact(self) -> Redactor:
        """What replaces secrets in all that is written."""
        return self.start.redact

    @property
    def run(self) -> Run:
        """The run, for reading; it has what was written until now."""
        return self.writer.run

    @property
    def elapsed(self) -> float | None:
        """The seconds that the run was worked on until now."""
        return None if self.earlier is None else round(self.earlier + time.perf_counter() - self.start.clock, 3)

    def trial_begins(self, key: TrialKey) -> None:
        """Tell who watches the run that a trial begins."""
        for watcher in self.start.watchers:
            watcher.begins(key)

    def trial_ends(self, trial: Trial) -> None:
        """Note in which revisions of MCP the agent spoke."""
        if trial.transcript is not None and (spoken := trial.transcript.protocols):
            self.protocols[trial.agent] = {**self.protocols.get(trial.agent, {}), **spoken}

    def amend(self, **entries: Any) -> None:
        """Replace entries of the manifest, which is not written yet."""
        self.manifest = attrs.evolve(self.manifest, **entries)

    def record_from(self, since: str) -> None:
        """Note that the run is recorded from a time on."""
        self.amend(recording=RecordingEntry(since))

    def count_starts(self) -> None:
        """Note which processes of servers were started until now."""
        if isinstance(self.plan, Plan):
            self.amend(server_starts=describe_starts(self.plan, self.ready, self.starts_before))

    def conclude(self, stopped: str, elapsed: float | None) -> None:
        """Note how the run ended and what was used for it, and write the manifest. Raises RunError."""
        self.amend(stopped=stopped or None, elapsed=elapsed, protocols=self.protocols or self.manifest.protocols)
        self.count_starts()
        if self.crew is not None:
            self.amend(workers=(*self.manifest.workers, *self.crew.workers))
        self.manifest = self.start.backend.concluded(self.manifest)
        self.writer.write_manifest(self.manifest)

    def grader(self, lacks: Lacks) -> AbstractContextManager[TrialGrader]:
        """Return what makes the scores that trials lack."""
        recording, finished = self.recording, self.run  # judges that compare read it after the last trial
        if self.crew_grader is not None:
            return nullcontext(self.crew_grader(lacks))
        return Grader.of(
            self.plan.scorers,
            self.ready.judges,
            self.plan.evaluation.execution,
            spec=self.spec,
            lacks=lacks,
            exchange=self.ready.exchange,
            run_budget=self.run_budget,
            counterpart=finished.counterpart,
            keep=(lambda _, frame: recording.write(frame)) if recording else None,
            judging=self.start.backend.judge,
        )

    def tell_endpoint(self, model: str, at_once: int | None, down: bool, trouble: str | None) -> None:
        """Tell hook plugins how an endpoint keeps up."""
        self.hooks.announce("keval_endpoint_changed", model=model, at_once=at_once, down=down, trouble=trouble)

    def write_scores(self, scores: Pass, scored: ScoredTrial) -> list[ScoreLine]:
        """Write new scores of a trial to a pass, and tell them as live events; returns them as they are written."""
        lines = scored.write(scores.write, self.redact)
        for event in score_events(scored.trial, lines) if self.hooks.wants_events else ():
            self.hooks.tell(event, self.redact)
        return lines
