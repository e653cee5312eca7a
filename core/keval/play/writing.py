"""The run of a play: what is up, and the run directory that its questions, answers and scores are written to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs

from keval.analysis.expectations import ExpectationCheck
from keval.analysis.gates import with_gates
from keval.analysis.reviews import review_findings
from keval.analysis.stats.summarise import Summariser
from keval.config.secrets import learn_config
from keval.execute.admission import Admission, Stop
from keval.execute.bringup.description import listing_blobs
from keval.execute.bringup.preflight import Ready, preflight
from keval.execute.models.budget import Meter
from keval.execute.models.prices import find_prices
from keval.execute.outbox import RunOutbox
from keval.execute.trial.worker import PlanWorker
from keval.plan.plan import Plan
from keval.records.costs import Rates
from keval.records.manifest import DatasetEntry, Manifest
from keval.records.sample import Sample
from keval.records.scores import ScoreLine
from keval.records.summary import Summary
from keval.records.trial import Trial
from keval.redaction import Redactor
from keval.run.pipeline import hooks_of, resources, unwrapped
from keval.run.stages import Running, announce_endpoints
from keval.score.backlog import late_judges, score_events
from keval.score.scoring import Grader
from keval.seams.hooks import hookimpl
from keval.seams.live import Feed, LiveEvent
from keval.store.journal import Journal
from keval.store.lines import read_trial
from keval.store.run import Run
from keval.store.scores import Pass
from keval.store.writer import RunWriter


@attrs.define(eq=False)
class PlayRun:
    """A run that a play writes. Trials are on disk when `write` returns, and scores when `keep` of `score` is called.

    `summariser` has added up all trials and scores so far.
    """

    plan: Plan
    ready: Ready
    worker: PlanWorker
    outbox: RunOutbox
    meter: Meter
    rates: Rates
    summariser: Summariser
    _running: Running
    _manifest: Manifest
    _scoring: Pass
    _grader: Grader
    _lines: dict[str, bytes]
    _expectations: ExpectationCheck = attrs.field(factory=ExpectationCheck, init=False)
    _busy: int = attrs.field(default=0, init=False)
    _since: float = attrs.field(default=0.0, init=False)
    _worked: float = attrs.field(default=0.0, init=False)

    @property
    def run(self) -> Run:
        """The run, for reading."""
        return self._running.writer.run

    @property
    def manifest(self) -> Manifest:
        """What the run is made of so far."""
        return self._manifest

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count the time of the block to that in which the run was worked on; blocks at once count as one."""
        if not self._busy:
            self._since = time.perf_counter()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                self._worked += time.perf_counter() - self._since

    async def with_facts(self, sample: Sample) -> Sample:
        """Return a sample with what hook plugins know of it. Raises PreflightError."""
        (found,) = [each async for each in self.ready.hooks.with_facts([sample], 1)]
        return found

    def add_sample(self, sample: Sample) -> Sample:
        """Write a sample that is about to be asked; returns it as it is written. Raises RunError."""
        with self._running.writer.adding(self._running.redact) as add:
            redacted = add(sample)
        dataset = self._manifest.dataset
        dataset = attrs.evolve(dataset, samples=(dataset.samples or 0) + 1)
        self._manifest = attrs.evolve(self._manifest, dataset=dataset)
        return self.run.sample(sample.id) if redacted else sample

    def begin_trial(self) -> None:
        """Note in the manifest that another trial begins. Raises RunError."""
        self._manifest = attrs.evolve(self._manifest, trials=self._manifest.trials + 1)
        self._running.writer.write_manifest(self._manifest)

    async def write(self, trial: Trial, sample: Sample) -> Trial:
        """Write a trial; returns it as it is written, with the sample as it is written. Raises RunError."""
        await self.outbox.trial(trial)
        line = self._lines.pop(trial.id)
        written = read_trial(line, lambda _: sample, lambda _: trial.characteristics)
        self.summariser.add_trial(written)
        self._expectations.add(written)
        return written

    async def score(
        self, trial: Trial, keep: Callable[[list[ScoreLine]], object], idle: Callable[[], Awaitable[object]]
    ) -> None:
        """Score a trial by the metrics, then by one judge after the other; `keep` is given scores that are written.

        Judges that would lengthen the time of answers wait for `idle`. Raises RunError.
        """
        redact, found = self._running.redact, list[ScoreLine]()
        judges = [judge.label for judge in self.plan.scorers.judges]
        plan = self.plan
        late = late_judges(plan.scorers.judges, plan.agents, self.ready.endpoints, plan.evaluation.budget)
        for turn, judge in enumerate([None, *judges] if trial.failure is None else []):
            if judge in late:
                await idle()
            scored = await self._grader.score(trial, without=judges[turn:])
            lines = scored.write(self._scoring.write, redact)
            self._scoring.note(lines)
            self.summariser.add_scores(lines)
            for event in score_events(trial, lines):
                self.outbox.event(event)
            found += lines
            if lines:
                keep(lines)
        self.ready.hooks.announce("keval_trial_scored", trial=trial, scores=found, late=False)

    def cost(self, trial: Trial) -> float | None:
        """Return what an answer cost in US dollars, with its attempts; `None` if that is unknown."""
        told = [*(attempt.transcript for attempt in trial.attempts), trial.transcript]
        return _sum(self.rates.attempt(trial.agent, each) for each in told if each is not None)

    def judging_cost(self, scores: Iterable[ScoreLine]) -> float | None:
        """Return what the judgements behind these scores of a trial cost; `None` if that is unknown."""
        found = ((line.judge, line.judgement) for line in scores)
        judged = {(judge, each.repetition): each for judge, each in found if judge and each}
        return _sum(self.rates.judgement(judge, each) for (judge, _), each in judged.items())

    def summary(self) -> Summary:
        """Summarise what there is so far."""
        return attrs.evolve(self.summariser.summary(), planned=self._manifest.trials)

    def close(self) -> None:
        """Write what the manifest says at the end, and the summary. Raises RunError."""
        writer = self._running.writer
        elapsed, stopped = round(self._worked, 3), self.meter.told() or None
        self._manifest = attrs.evolve(self._manifest, elapsed=elapsed, stopped=stopped)
        writer.write_manifest(self._manifest)
        told = attrs.evolve(
            self.summary(),
            elapsed=self._manifest.elapsed,
            stopped=self._manifest.stopped,
            reviews=review_findings(writer.run),
        )
        summary = with_gates(writer.run, told, self._expectations)
        writer.write_summary(summary)
        self.ready.hooks.announce("keval_run_finished", directory=writer.path, summary=summary)


def _sum(costs: Iterable[float | None]) -> float | None:
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


@attrs.frozen(eq=False)
class _Listener:
    """Hands live events, without their secrets, to the feed of a play."""

    feed: Feed

    @hookimpl
    def keval_live_event(self, event: LiveEvent) -> None:
        self.feed.publish(event)


@asynccontextmanager
async def open_run(
    plan: Plan, root: Path, redact: Redactor, feed: Feed, meter: Meter | None = None
) -> AsyncIterator[PlayRun]:
    """Bring a plan up and begin a run under `root`; at the end it is summarised, or removed if nothing was asked.

    `meter` has counted what the play used up before.

    Raises PreflightError, and RunError when the run's directory cannot be written.
    """
    hooks = hooks_of(plan.hooks, [("play", _Listener(feed))])
    started = datetime.now(UTC)
    learn_config(redact, plan.evaluation)
    async with resources() as scope:
        ready = await preflight(plan, scope, redact, hooks)
        prices = find_prices(plan.evaluation, plan.askers, ready.endpoints)
        writer = RunWriter.create(root, plan.evaluation.folder, started)
        with writer.freezing(redact):
            pass  # questions are added when they are asked
        with writer.locked(), unwrapped():
            running = Running.of(plan, ready, writer, hooks=hooks, prices=prices, redact=redact, samples={})
            dataset = DatasetEntry(str(plan.dataset.path or ""), samples=0)
            manifest = attrs.evolve(running.describe(started), dataset=dataset, play=True)
            if listings := listing_blobs(ready, redact):
                writer.write_blobs(listings)
            writer.write_manifest(manifest)
            hooks.announce("keval_run_started", directory=writer.path, manifest=manifest)
            announce_endpoints(ready.exchange, hooks)
            rates = Rates.of(manifest)
            prerecorded = [agent.label for agent in plan.agents if agent.prerecorded]
            meter = meter or Meter(plan.evaluation.budget)
            meter.rates, meter.prerecorded = rates, prerecorded
            lines: dict[str, bytes] = {}
            async with Journal(writer.run.trials_file) as journal:
                admission = Admission(iter(()), Stop(), meter)
                outbox = RunOutbox(writer, journal, redact, hooks, admission, written=lines.__setitem__)
                with (
                    writer.run.scores_file.scoring(running.spec) as scoring,
                    Grader.of(
                        plan.scorers,
                        ready.judges,
                        plan.evaluation.execution,
                        spec=running.spec,
                        lacks=scoring.lacks,
                        exchange=ready.exchange,
                        meter=meter,
                    ) as grader,
                ):
                    found = PlayRun(
                        plan,
                        ready,
                        PlanWorker(plan, ready),
                        outbox,
                        meter,
                        rates,
                        Summariser(manifest),
                        running,
                        manifest,
                        scoring,
                        grader,
                        lines,
                    )
                    yield found
            if found.manifest.trials:
                found.close()
        if not found.manifest.trials:
            writer.remove()
