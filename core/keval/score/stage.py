"""The scoring stage of a run: its trials are scored, as they finish or afterwards, and summarised."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import attrs

from keval.config.evaluation import Execution
from keval.execute.models.budget import Meter
from keval.execute.models.exchange import ModelExchange
from keval.execute.working_time import WorkingTime
from keval.plan.hooks import Hooks
from keval.plan.plan import Scorers
from keval.recording.writer import RecordingWriter
from keval.records.manifest import Manifest
from keval.records.summary import Summary
from keval.redaction import Redactor
from keval.score.backlog import Backlog, Offer, score_events
from keval.score.replaying import Replaying, at_once
from keval.score.scoring import Grader, ScoredTrial
from keval.seams.interfaces import Judge
from keval.store.scores import Pass, ScoringSpec
from keval.store.writer import RunWriter

if TYPE_CHECKING:
    from keval.analysis.regression import Regression


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
        self,
        manifest: Manifest,
        working: WorkingTime | None = None,
        *,
        missing: bool = False,
        done: Collection[str] = (),
        run_trials: Callable[[Offer], Awaitable[str]] | None = None,
        late: Collection[str] = (),
    ) -> Summary:
        """Make the scores and write them, the manifest that tells of them, and the summary.

        Trials that `run_trials` runs are scored as they finish, but not by `late` judges; then all that is left, and
        the trials that were `done` before. `run_trials` returns why it left trials out, if it did. `working` is the
        time that the run is worked on. A finished run that is scored again has neither.
        """
        run, told = self.writer.run, ""
        with (
            run.scores_file.scoring(self.spec, missing=missing, of=done if run_trials else None) as scoring,
            self._grader(scoring) as grader,
        ):
            at_once = self.execution.max_concurrent
            backlog = Backlog(grader, run.read_trial, self._kept_in(scoring), scoring.note, at_once, {*late}, {*done})
            if run_trials is None:
                await backlog.score(run.trials())
            else:
                async with backlog.as_they_finish() as offer:
                    told = await run_trials(offer)
                self.exchange.try_again("judge", backlog.down)
                if backlog.left:
                    await backlog.score(trial for trial in run.trials() if trial.id in backlog.left)
            if self.recording:
                self.recording.append(b"")  # before the scores of these judgements count
            told = "; ".join(filter(None, (told, self.meter.told())))
            elapsed = working.total() if working else manifest.elapsed
            manifest = attrs.evolve(manifest, stopped=told or None, elapsed=elapsed)
            manifest = self.replaying.counted(manifest) if self.replaying else manifest
            # Before the scores replace earlier ones, so that there is no score by a scorer that the manifest lacks.
            self.writer.write_manifest(manifest)
        from keval.analysis.expectations import ExpectationCheck  # they import NumPy
        from keval.analysis.gates import with_gates

        run, expectations = self.writer.run, ExpectationCheck()  # a run keeps its manifest, once read
        summary = run.summary(expectations.watch(run.trials()))
        summary = with_gates(run, summary, expectations, regression=self.regression)
        self.writer.write_summary(summary)
        self.hooks.announce("keval_run_finished", directory=run.path, summary=summary)
        return summary

    def _grader(self, scoring: Pass) -> AbstractContextManager[Grader]:
        return Grader.of(
            self.scorers,
            self.judges,
            self.execution,
            spec=self.spec,
            lacks=scoring.lacks,
            exchange=self.exchange,
            meter=self.meter,
            recording=self.recording,
            judging=self.replaying.judge if self.replaying else None,
            sleep=at_once if self.replaying else asyncio.sleep,
        )

    def _kept_in(self, scoring: Pass) -> Callable[[ScoredTrial, bool], None]:
        """Return what writes the scores of a trial to the pass, and announces them."""

        def keep(scored: ScoredTrial, late: bool) -> None:
            lines = scored.write(scoring.write, self.redact)
            for event in score_events(scored.trial, lines) if self.hooks.wants_events else ():
                self.hooks.tell(event, self.redact)
            self.hooks.announce("keval_trial_scored", trial=scored.trial, scores=lines, late=late)

        return keep
