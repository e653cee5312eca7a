"""Scoring: every metric and judge over every trial that was answered, read from the run's directory."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import attrs

from keval.config.evaluation import Execution
from keval.errors import TrialError
from keval.interfaces import Judge, Metric
from keval.records import Trial
from keval.run.cancellation import apart, being_cancelled
from keval.run.checked import Scored, checked, unscored
from keval.run.judge import JudgeRunner
from keval.run.lines import score_line
from keval.run.plan import Scorers
from keval.run.scores_file import Wanted
from keval.scores import Judgement, Rubric, Scale, Score, ScoreLine

__all__ = ["ScoredTrial", "score_trials"]


@attrs.frozen
class ScoredTrial:
    """A trial with the score lines that were made for it, as records and `written`."""

    trial: Trial
    lines: tuple[ScoreLine, ...] = ()
    written: tuple[bytes, ...] = ()


async def score_trials(
    trials: Iterator[Trial],
    scorers: Scorers,
    judges: Mapping[str, Judge],
    execution: Execution,
    keep: Callable[[ScoredTrial], None],
    *,
    wanted: Wanted,
    lacks: Callable[[str, str, str | None, int], bool],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Score every trial, at most `max_concurrent` at once; `keep` is called for each, failed trials included.

    `judges` are the plan's, by label, with their models resolved. `lacks` says of a trial's id, a metric, a judge and
    its repetition whether that score, of those `wanted`, is to be made.
    """
    rng = random.Random(execution.seed)
    grader = _Grader(
        metrics=[(item.label, item.plugin, getattr(item.plugin, "scale", Scale())) for item in scorers.metrics],
        judges={label: JudgeRunner.of(judge, execution, sleep, rng) for label, judge in judges.items()},
        rubrics=scorers.rubrics,
        execution=execution,
        wanted=wanted,
        lacks=lacks,
    )

    async def work() -> None:
        for trial in trials:
            scored = () if trial.failure else map(_written, await grader.lines(trial))
            keep(ScoredTrial(trial, *zip(*scored, strict=True)))
            if being_cancelled():
                raise asyncio.CancelledError
            # Metrics alone never wait; let Ctrl-C and the progress display in.
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(execution.max_concurrent):
            group.create_task(work())


@attrs.frozen
class _Grader:
    metrics: Sequence[tuple[str, Metric, Scale]]
    judges: Mapping[str, JudgeRunner]
    rubrics: Sequence[Rubric]
    execution: Execution
    wanted: Wanted
    lacks: Callable[[str, str, str | None, int], bool]

    async def lines(self, trial: Trial) -> list[ScoreLine]:
        """Make the scores that a trial lacks; what fails is a line without a value."""
        lines = [
            self._line(trial, label, await self._measured(metric, scale, trial))
            for label, metric, scale in self.metrics
            if self.lacks(trial.id, label, None, 1)
        ]
        for label, judge in self.judges.items():
            times = max((self.wanted.repetitions[rubric.name, label] for rubric in self.rubrics), default=0)
            for repetition in range(1, times + 1):
                rubrics = [rubric for rubric in self.rubrics if self.lacks(trial.id, rubric.name, label, repetition)]
                if rubrics:
                    scores, judgement = await judge.judge_trial(trial, rubrics, repetition)
                    lines += [
                        self._line(trial, rubric.name, scored, judge=label, judgement=judgement)
                        for rubric, scored in zip(rubrics, scores, strict=True)
                    ]
        return lines

    async def _measured(self, metric: Metric, scale: Scale, trial: Trial) -> Scored:
        try:
            score = metric.score(trial)
            if not isinstance(score, Score) and inspect.isawaitable(score):
                score = await self._awaited(score)
            return checked(score, scale)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if being_cancelled():
                raise asyncio.CancelledError from error
            return unscored(error)

    async def _awaited(self, score: Awaitable[Score]) -> Score:
        limit = asyncio.timeout(self.execution.timeout_seconds)
        try:
            async with limit:
                return await apart(score)
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"no score within {self.execution.timeout_seconds:g} s"
            raise TrialError(message, stage="score", kind="timeout") from None

    def _line(
        self,
        trial: Trial,
        metric: str,
        scored: Scored,
        *,
        judge: str | None = None,
        judgement: Judgement | None = None,
    ) -> ScoreLine:
        score, failure = scored
        return ScoreLine(
            trial=trial.id,
            sample=trial.sample.id,
            agent=trial.agent,
            condition=trial.condition,
            repetition=trial.repetition,
            metric=metric,
            judge=judge,
            score=score,
            failure=failure,
            judgement=judgement,
            digest=self.wanted.digests[metric, judge],
        )


def _written(line: ScoreLine) -> tuple[ScoreLine, bytes]:
    """A score and its line; one with details that no line can hold is no score."""
    try:
        return line, score_line(line)
    except (TypeError, ValueError, RecursionError) as error:
        score, failure = unscored(TypeError(f"the details of the score cannot be written: {error}"))
        line = attrs.evolve(line, score=score, failure=failure)
        return line, score_line(line)
