"""The stages of a run that is up: trials are run and written, scored as they finish, and summarised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

import attrs

from keval.analysis.regression import Regression
from keval.config.evaluation import failure_limit
from keval.config.secrets import learn_endpoints
from keval.execute.admission import Admission, Stop
from keval.execute.bringup.description import describe_run, listing_blobs
from keval.execute.bringup.preflight import Ready
from keval.execute.models.budget import Meter
from keval.execute.models.endpoints import endpoints_by_model, endpoints_of
from keval.execute.models.exchange import ModelExchange
from keval.execute.outbox import RunOutbox
from keval.execute.trial.worker import PlanWorker
from keval.execute.working_time import WorkingTime
from keval.plan.hooks import Hooks
from keval.plan.plan import Plan, Scorers
from keval.recording.writer import RecordingWriter
from keval.records.costs import Rates
from keval.records.manifest import Manifest
from keval.records.prices import Price
from keval.records.sample import Sample
from keval.records.scores import Rubric, Scorer
from keval.records.summary import Summary
from keval.records.trial import TrialKey
from keval.redaction import Redactor
from keval.score.backlog import Offer, late_judges
from keval.score.digest import rubric_digest, scorer_digests
from keval.score.replaying import Replaying
from keval.score.stage import Scoring
from keval.seams.infrastructure import Job
from keval.store.journal import Journal
from keval.store.scores import ScoringSpec
from keval.store.writer import RunWriter

_RECORDED_AT_ONCE = 64
"""Trials at once if all answers are recorded: no model is called, and keval waits only for the disk."""


@attrs.frozen
class Running:
    """A plan that is up, and the run that it is written to."""

    plan: Plan
    ready: Ready
    writer: RunWriter
    hooks: Hooks
    spec: ScoringSpec
    prices: Mapping[str, Price]
    redact: Redactor
    samples: Mapping[str, Sample]
    regression: Regression | None = None
    begins: Callable[[TrialKey], object] | None = None
    replaying: Replaying | None = None

    @classmethod
    def of(
        cls,
        plan: Plan,
        ready: Ready,
        writer: RunWriter,
        *,
        hooks: Hooks,
        prices: Mapping[str, Price],
        redact: Redactor,
        samples: Mapping[str, Sample],
        earlier: Mapping[Scorer, int] | None = None,
        regression: Regression | None = None,
        begins: Callable[[TrialKey], object] | None = None,
    ) -> Running:
        """Prepare to write. `samples` are those that are asked otherwise than they are written, by id.

        `earlier` is how often each scorer has graded an answer before. `begins` hears of each trial that begins.
        """
        execution = plan.evaluation.execution
        spec = ScoringSpec(
            scorer_digests(plan.scorers, ready.endpoints, execution.seed),
            plan.scorers.repetitions(execution.judge_repetitions, earlier),
        )
        planned = [item.plugin for item in (*plan.agents, *plan.scorers.judges)]
        learn_endpoints(redact, endpoints_of(ready.endpoints, planned, ready.agents.values(), ready.judges.values()))
        return cls(plan, ready, writer, hooks, spec, prices, redact, samples, regression, begins)

    def describe(self, started: datetime) -> Manifest:
        """Describe a run of the plan that begins."""
        return describe_run(
            self.plan,
            self.ready,
            self.spec,
            self.writer.run.id,
            started,
            rubrics=rubrics_of(self.plan.scorers),
            prices=self.prices,
            redact=self.redact,
        )

    async def finish(
        self,
        manifest: Manifest,
        working: WorkingTime,
        *,
        stop: Stop | None = None,
        done: Collection[str] = (),
        missing: bool = False,
    ) -> Summary:
        """Run the trials that are not `done`, and score. With `missing`, only scores that are lacking are made."""
        with RecordingWriter.of(manifest, self.writer.path, self.redact) as recording:
            if listings := listing_blobs(self.ready, self.redact):
                self.writer.write_blobs(listings)
            self.writer.write_manifest(manifest)
            if recording:
                recording.begin(endpoints_by_model(self.plan.askers, self.ready.endpoints), self.ready.listed)
            with working.kept(self.writer):
                return await self._finish(manifest, working, stop or Stop(), done, recording, missing=missing)

    async def _finish(
        self,
        manifest: Manifest,
        working: WorkingTime,
        stop: Stop,
        done: Collection[str],
        recording: RecordingWriter | None,
        *,
        missing: bool,
    ) -> Summary:
        plan, ready, writer, hooks = self.plan, self.ready, self.writer, self.hooks
        hooks.announce("keval_run_started", directory=writer.path, manifest=manifest)
        announce_endpoints(ready.exchange, hooks)
        execution, budget = plan.evaluation.execution, plan.evaluation.budget
        count = sum(key.id not in done for key in plan.trials()) if done else plan.trial_count
        prerecorded = [agent.label for agent in plan.agents if agent.prerecorded]
        meter = Meter.of(writer.run, budget, Rates.of(manifest), prerecorded)
        admission = Admission(
            (key for key in plan.trials() if key.id not in done),
            stop,
            meter,
            None if execution.max_failures is None else failure_limit(execution.max_failures, count),
            self.begins,
        )
        worker = self.replaying.worker(plan, ready) if self.replaying else PlanWorker(plan, ready)
        written = writer.run.samples

        async def run_trials(offer: Offer) -> str:
            async with Journal(writer.run.trials_file, recording.append if recording else None) as journal:
                outbox = RunOutbox(writer, journal, self.redact, hooks, admission, recording, offer)
                while True:
                    job = Job(
                        manifest=manifest,
                        keys=admission.admitted(),
                        count=count,
                        sample=lambda name: self.samples.get(name) or written.named(name),
                        worker=worker,
                        outbox=outbox,
                        max_concurrent=_max_concurrent(plan),
                    )
                    await stop.run(plan.executor.plugin.execute(job), execution.grace_seconds)
                    if not admission.waits:
                        return admission.close()

        scoring = Scoring(
            writer,
            execution,
            plan.scorers,
            ready.judges,
            ready.exchange,
            self.spec,
            hooks,
            self.redact,
            meter,
            self.regression,
            recording,
            self.replaying,
        )
        late = late_judges(plan.scorers.judges, plan.agents, ready.endpoints, budget)
        return await scoring.score(manifest, working, missing=missing, done=done, run_trials=run_trials, late=late)


def announce_endpoints(exchange: ModelExchange, hooks: Hooks) -> None:
    """Tell hook plugins when the endpoint of a model is given more or fewer requests, or is down."""
    exchange.watchers.append(
        lambda model, at_once, down: hooks.announce("keval_endpoint_changed", model=model, at_once=at_once, down=down)
    )


def _max_concurrent(plan: Plan) -> int:
    """Return how many trials may run at once."""
    if all(agent.prerecorded for agent in plan.agents):
        return _RECORDED_AT_ONCE
    return plan.evaluation.execution.max_concurrent


def rubrics_of(scorers: Scorers) -> dict[str, Rubric]:
    """Return what judges grade by, by digest: a rubric of one name may have said something else to another judge."""
    return {rubric_digest(rubric): rubric for rubric in (scorers.rubrics if scorers.judges else ())}
