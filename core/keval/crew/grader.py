"""Scoring on a crew: what a trial lacks is decided and counted here, and scored by a worker elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

import attrs

from keval.errors import TrialError
from keval.execute.models.budget import RunBudget
from keval.plan.plan import Scorers
from keval.records.scores import Judgement
from keval.records.trial import Trial
from keval.score.judging import unscored
from keval.score.scoring import Lacks, ScoredTrial, score_of, written_score
from keval.seams.distribution import Crew, PackedScores, WantedScore
from keval.store.scores import ScoringSpec
from keval.store.serialization import read_score, trial_line


@attrs.frozen
class CrewGrader:
    """Scores trials as `Grader` does, any number of them concurrently.

    `keep` is told of what a worker packed beside the lines: frames of the recording, and the secrets that it replaced.
    """

    crew: Crew
    scorers: Scorers
    spec: ScoringSpec
    lacks: Lacks
    run_budget: RunBudget
    keep: Callable[[PackedScores], object]

    async def score(self, trial: Trial, without: Container[str] = ()) -> ScoredTrial:
        """Make the scores that a trial lacks; see `TrialGrader`."""
        if trial.failure is not None:
            return ScoredTrial(trial)
        line, lines = trial_line(trial), list[bytes]()
        for judge, wanted in self._wanted(trial, without):
            if judge is None:
                lines += await self._made(line, trial, wanted)
            else:
                lines += await self._judged(line, trial, judge, wanted)
        return ScoredTrial(trial, tuple(map(read_score, lines)), tuple(lines))

    def _wanted(self, trial: Trial, without: Container[str]) -> Iterator[tuple[str | None, list[WantedScore]]]:
        """Yield what metrics score at once, then what each judge grades at once."""
        metrics = [(item.label, None, 1) for item in self.scorers.metrics if self.lacks(trial, item.label, None, 1)]
        if metrics:
            yield None, [*metrics]
        for label in (item.label for item in self.scorers.judges if item.label not in without):
            rubrics = [rubric.name for rubric in self.scorers.rubrics]
            times = max((self.spec.repetitions.get((name, label), 0) for name in rubrics), default=0)
            for repetition in range(1, times + 1):
                wanted = [(name, label, repetition) for name in rubrics if self.lacks(trial, name, label, repetition)]
                if wanted:
                    yield label, [*wanted]

    async def _judged(self, line: bytes, trial: Trial, judge: str, wanted: Sequence[WantedScore]) -> Sequence[bytes]:
        if not await self.run_budget.begin_judgement():
            error = TrialError("the budget of the run is used up", kind="budget")
            return self._unscored(trial, wanted, error)
        lines_made: Sequence[bytes] = ()
        try:
            lines_made = await self._made(line, trial, wanted)
            return lines_made
        finally:
            self.run_budget.end_judgement(judge, read_score(lines_made[0]).judgement if lines_made else None)

    async def _made(self, line: bytes, trial: Trial, wanted: Sequence[WantedScore]) -> Sequence[bytes]:
        try:
            packed = await self.crew.score(line, trial.sample, wanted)
        except TrialError as error:
            return self._unscored(trial, wanted, error)
        self.keep(packed)
        return packed.lines

    def _unscored(self, trial: Trial, wanted: Sequence[WantedScore], error: TrialError) -> Sequence[bytes]:
        """Return the lines of scores that could not be made."""
        verdict, lines = unscored(error), list[bytes]()
        for name, judge, repetition in wanted:
            judgement = None if judge is None else Judgement(repetition, model_calls=0)
            score = score_of(trial, self.spec, name, verdict, judge=judge, judgement=judgement)
            lines.append(written_score(score)[1])
        return lines
