"""The stages of a run that is up: trials are run and written, then scored and summarised."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime

import attrs

from keval.config.evaluation import Execution, failure_limit
from keval.config.secrets import learn_endpoints
from keval.execute.admission import Admission
from keval.execute.describe import describe_run
from keval.execute.endpoints import endpoints_by_model, endpoints_of
from keval.execute.exchange import ModelExchange
from keval.execute.meter import Meter
from keval.execute.outbox import RunOutbox
from keval.execute.preflight import Ready
from keval.execute.server_entries import listing_blobs
from keval.execute.stopping import Stop
from keval.execute.worker import PlanWorker
from keval.execute.working_time import WorkingTime
from keval.gates.decide import with_gates
from keval.gates.expectations import ExpectationCheck
from keval.gates.regression import Regression
from keval.infrastructure import Job
from keval.interfaces import Judge
from keval.manifest import Manifest
from keval.plan.hooks import Hooks
from keval.plan.plan import Plan, Scorers
from keval.prices import Price
from keval.recording.writer import RecordingWriter
from keval.records import Sample
from keval.redaction import Redactor
from keval.score.digest import rubric_digest, scorer_digests
from keval.score.events import score_events
from keval.score.replaying import Replaying, at_once
from keval.score.scoring import ScoredTrial, score_trials
from keval.scores import Rubric, Scorer
from keval.stats.rates import Rates
from keval.stats.summarise import Summariser
from keval.store.journal import Journal
from keval.store.jsonl import read_score
from keval.store.scores_file import ScoringSpec
from keval.store.writer import RunWriter
from keval.summary import Summary

__all__ = ["Running", "Scoring", "announce_endpoints", "rubrics_of"]

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
    ) -> Running:
        """Prepare to write. `samples` are those that are asked otherwise than they are written, by id.

        `earlier` is how often each scorer has graded an answer before.
        """
        execution = plan.evaluation.execution
        spec = ScoringSpec(
            scorer_digests(plan.scorers, ready.endpoints, execution.seed),
            plan.scorers.repetitions(execution.judge_repetitions, earlier),
        )
        planned = [item.plugin for item in (*plan.agents, *plan.scorers.judges)]
        learn_endpoints(redact, endpoints_of(ready.endpoints, planned, ready.agents.values(), ready.judges.values()))
        return cls(plan, ready, writer, hooks, spec, prices, redact, samples, regression)

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
        plan, writer, hooks, written = self.plan, self.writer, self.hooks, self.writer.run.samples
        hooks.announce("keval_run_started", directory=writer.path, manifest=manifest)
        announce_endpoints(self.ready.exchange, hooks)
        ready, execution = self.ready, plan.evaluation.execution
        count = sum(key.id not in done for key in plan.trials()) if done else plan.trial_count
        prerecorded = [agent.label for agent in plan.agents if agent.prerecorded]
        meter = Meter.of(writer.run, plan.evaluation.budget, Rates.of(manifest), prerecorded)
        admission = Admission(
            (key for key in plan.trials() if key.id not in done),
            stop,
            meter,
            None if execution.max_failures is None else failure_limit(execution.max_failures, count),
        )
        worker = self.replaying.worker(plan, ready) if self.replaying else PlanWorker(plan, ready)
        async with Journal(writer.run.trials_file, recording.append if recording else None) as journal:
            outbox = RunOutbox(writer, journal, self.redact, hooks, admission, recording)
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
                    break
        scores = Scoring(
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
        return await scores.score(manifest, working, missing=missing, stopped=admission.close())


@attrs.frozen
class Scoring:
    """A scoring pass over a run."""

    writer: RunWriter
    execution: Execution
    scorers: Scorers
    judges: Mapping[str, Judge]
    exchange: ModelExchange
    spec: ScoringSpec
    hooks: Hooks
    redact: Redactor
    meter: Meter
    regression: Regression | None = None
    recording: RecordingWriter | None = None
    replaying: Replaying | None = None

    async def score(
        self, manifest: Manifest, working: WorkingTime | None = None, *, missing: bool = False, stopped: str = ""
    ) -> Summary:
        """Make the scores and write them, the manifest that tells of them, and the summary.

        `working` is the time that the run is worked on, unless a finished run is scored again. `stopped` says why
        trials were left out, if they were.
        """
        run, expectations = self.writer.run, ExpectationCheck()
        summariser = Summariser(manifest, reviews=[*run.reviews_file.read()])
        with run.scores_file.scoring(self.spec, missing=missing) as scoring:

            def keep(scored: ScoredTrial) -> None:
                written = self.redact.lines(scored.written)
                # What is summed up and announced is what the file says.
                lines = [
                    line if kept == told else read_score(kept)
                    for line, told, kept in zip(scored.lines, scored.written, written, strict=True)
                ]
                if written:
                    scoring.write(b"".join(line + b"\n" for line in written))
                summariser.add_trial(scored.trial)
                expectations.add(scored.trial)
                summariser.add_scores(lines)
                for event in score_events(scored.trial, lines) if self.hooks.wants_events else ():
                    self.hooks.tell(event, self.redact)
                self.hooks.announce("keval_trial_scored", trial=scored.trial, scores=lines)

            await score_trials(
                run.trials(),
                self.scorers,
                self.judges,
                self.execution,
                keep,
                spec=self.spec,
                lacks=scoring.lacks,
                exchange=self.exchange,
                meter=self.meter,
                recording=self.recording,
                judging=self.replaying.judge if self.replaying else None,
                sleep=at_once if self.replaying else asyncio.sleep,
            )
            if self.recording:
                self.recording.append(b"")  # before the scores of these judgements count
            told = "; ".join(filter(None, (stopped, self.meter.told())))
            elapsed = working.total() if working else manifest.elapsed
            manifest = attrs.evolve(manifest, stopped=told or None, elapsed=elapsed)
            manifest = self.replaying.counted(manifest) if self.replaying else manifest
            # Before the scores replace earlier ones, so that there is no score by a scorer that the manifest lacks.
            self.writer.write_manifest(manifest)
        others = {entry.scorer for entry in manifest.scorers} - self.spec.digests.keys()
        for line in run.scores_file.read() if others or scoring.had else ():
            if line.scorer in others or scoring.had_already(line):
                summariser.add_scores([line])
        told_at_end = {name: getattr(manifest, name) for name in ("stopped", "elapsed", "replay")}
        summary = attrs.evolve(summariser.summary(), **told_at_end)
        # A run keeps its manifest, once read; this one has what was just written.
        summary = with_gates(self.writer.run, summary, expectations, regression=self.regression)
        self.writer.write_summary(summary)
        self.hooks.announce("keval_run_finished", directory=run.path, summary=summary)
        return summary


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
