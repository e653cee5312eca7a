"""Scoring: every metric and judge over every trial that was answered, read from the run's directory."""

from __future__ import annotations

import asyncio
import inspect
import random
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import attrs

from keval.config.evaluation import Execution
from keval.errors import TrialError
from keval.interfaces import Judge, Metric
from keval.records import Failure, Rubric, Scale, Score, ScoreLine, Trial
from keval.run.cancellation import being_cancelled
from keval.run.lines import score_line
from keval.run.plan import Scorers
from keval.run.retry import backoff

__all__ = ["ScoredTrial", "score_trials"]

_LARGEST = 1e100
"""No measurement; the squares of larger numbers cannot be added up."""

_TYPES = (float | int | None, str, bool, dict | Mapping)
"""What value, reason, neutral and details of a score are."""


@attrs.frozen
class ScoredTrial:
    """A trial with the score lines that were made for it, as records and `written`; none when the trial failed."""

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
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Score every trial, at most `max_concurrent` at once; `keep` is called for each, failed trials included.

    `judges` are the plan's, by label, with their models resolved.
    """
    metrics = [(item.label, item.plugin, getattr(item.plugin, "scale", Scale())) for item in scorers.metrics]
    grader = _Grader(metrics, scorers.rubrics, judges, execution, sleep, random.Random(execution.seed))

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
    rubrics: Sequence[Rubric]
    judges: Mapping[str, Judge]
    execution: Execution
    sleep: Callable[[float], Awaitable[None]]
    rng: random.Random

    async def lines(self, trial: Trial) -> list[ScoreLine]:
        """Score one trial with everything; what fails is a line without a value."""
        lines = []
        for label, metric, scale in self.metrics:
            try:
                score = metric.score(trial)
                if not isinstance(score, Score) and inspect.isawaitable(score):
                    async with asyncio.timeout(self.execution.timeout_seconds):
                        score = await score
                score, failure = _checked(score, scale)
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                if being_cancelled():
                    raise asyncio.CancelledError from error
                score, failure = _unscored(error)
            lines.append(_line(trial, label, None, score, failure))
        for label in self.judges:
            lines.extend(await self._judged(label, trial))
        return lines

    async def _judged(self, label: str, trial: Trial) -> list[ScoreLine]:
        rubrics = self.rubrics
        attempts = 1
        while True:
            try:
                async with asyncio.timeout(self.execution.timeout_seconds):
                    scores = await self.judges[label].grade(trial, rubrics)
                missing = Score(None, "the judge returned no score for this rubric")
                checked = [(rubric, *_checked(scores.get(rubric.name, missing), rubric.scale)) for rubric in rubrics]
                return [_line(trial, rubric.name, label, score, failure) for rubric, score, failure in checked]
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                if being_cancelled():
                    raise asyncio.CancelledError from error
                if isinstance(error, TrialError) and error.retryable and attempts < self.execution.retry.max_attempts:
                    await self.sleep(backoff(self.execution.retry, attempts, error.retry_after, self.rng))
                    attempts += 1
                    continue
                score, failure = _unscored(error)
                return [_line(trial, rubric.name, label, score, failure) for rubric in rubrics]


def _checked(score: object, scale: Scale) -> tuple[Score, Failure | None]:
    """Hold a score to its scale; what leaves it is no score."""
    if not isinstance(score, Score):
        return _unscored(TypeError(f"expected a Score, got {type(score).__name__}"))
    value, fields = score.value, (score.value, score.reason, score.neutral, score.details)
    if not all(map(isinstance, fields, _TYPES)) or isinstance(value, bool):
        return _unscored(TypeError(f"a Score is a number, a text, true or false, and a mapping; got {fields!r:.200}"))
    if value is not None and not (scale.low <= value <= min(scale.high, _LARGEST)):
        message = f"the value {value} is outside the scale {scale.low:g} to {scale.high:g}"
        return Score(None, message, details=score.details), Failure("score", "out_of_scale", message)
    return score, None


def _written(line: ScoreLine) -> tuple[ScoreLine, bytes]:
    """A score and its line; one with details that no line can hold is no score."""
    try:
        return line, score_line(line)
    except (TypeError, ValueError, RecursionError) as error:
        score, failure = _unscored(TypeError(f"the details of the score cannot be written: {error}"))
        line = attrs.evolve(line, score=score, failure=failure)
        return line, score_line(line)


def _unscored(error: BaseException) -> tuple[Score, Failure]:
    """A scorer's error is a failure that is kept, and never a low score."""
    text = None if isinstance(error, TrialError) else "".join(traceback.format_exception(error))
    kind = error.kind if isinstance(error, TrialError) else type(error).__name__
    message = str(error) or kind
    return Score(None, f"{kind}: {message}"), Failure("score", kind, message, text)


def _line(trial: Trial, metric: str, judge: str | None, score: Score, failure: Failure | None) -> ScoreLine:
    return ScoreLine(
        trial.id, trial.sample.id, trial.agent, trial.condition, trial.repetition, metric, judge, score, failure
    )
