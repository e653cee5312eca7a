"""Scoring every answered trial of a run by every metric and judge."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import attrs

from keval.config.evaluation import Execution
from keval.errors import PluginWarning, TrialError
from keval.execute.attempts import Patience, Sleep, attempt, being_cancelled
from keval.execute.exchange import ModelExchange
from keval.execute.meter import Meter
from keval.interfaces import Judge, Metric
from keval.plan.plan import ResolvedPlugin, Scorers
from keval.recording.writer import RecordingWriter
from keval.records import Trial
from keval.score.judging import JudgeRunner, TrialJudge
from keval.score.validate import Verdict, unscored, validate_score
from keval.scores import Judgement, Rubric, Scale, Score, ScoreLine
from keval.store.jsonl import score_line
from keval.store.scores_file import ScoringSpec

__all__ = ["ScoredTrial", "score_trials"]

_SLOW = 0.5
"""Seconds for which a metric may block the event loop before a warning names it."""
_THREADS = 2 * (os.cpu_count() or 1)


@attrs.frozen
class ScoredTrial:
    """A trial with its new scores, as records and as the lines that are `written`."""

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
    spec: ScoringSpec,
    lacks: Callable[[str, str, str | None, int], bool],
    exchange: ModelExchange | None = None,
    meter: Meter | None = None,
    recording: RecordingWriter | None = None,
    judging: Callable[[JudgeRunner], TrialJudge] | None = None,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Score every trial, at most `max_concurrent` at once; `keep` is called for each, failed trials included.

    `judges` are the plan's, by label, with their models resolved. `lacks` takes a trial's id, a metric, a judge and its
    repetition, and returns whether `spec` wants that score and it is missing. `judging` returns what asks a judge in
    place of its runner.
    """
    patience = Patience(execution.retry, sleep, random.Random(execution.seed))
    through, counted = exchange or ModelExchange(), meter or Meter()
    asking = judging or _itself
    with _threads(scorers.metrics) as threads:
        grader = _Grader(
            metrics=[_Measure(item, execution.timeout_seconds, threads) for item in scorers.metrics],
            judges={
                label: asking(JudgeRunner(label, judge, execution, patience, through, counted, recording))
                for label, judge in judges.items()
            },
            rubrics=scorers.rubrics,
            spec=spec,
            lacks=lacks,
        )

        async def work() -> None:
            for trial in trials:
                scored = () if trial.failure else map(_written, await grader.lines(trial))
                keep(ScoredTrial(trial, *zip(*scored, strict=True)))
                if being_cancelled():
                    raise asyncio.CancelledError
                # Metrics alone never yield to the event loop, which Ctrl-C and the progress display need.
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for _ in range(execution.max_concurrent):
                group.create_task(work())


def _itself(judge: JudgeRunner) -> TrialJudge:
    return judge


@contextmanager
def _threads(metrics: Sequence[ResolvedPlugin]) -> Iterator[ThreadPoolExecutor | None]:
    """Yield threads for metrics that block, or `None` if there are none."""
    if not any(_blocks(item) for item in metrics):
        yield None
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="keval-metric") as threads:
        yield threads


def _blocks(item: ResolvedPlugin) -> bool:
    return getattr(item.plugin, "blocks", False) is True


class _Measure:
    """One metric, called in the event loop, or in a thread if it blocks."""

    def __init__(self, item: ResolvedPlugin, seconds: float, threads: ThreadPoolExecutor | None) -> None:
        self.label = item.label
        self._metric: Metric = item.plugin
        self._scale = getattr(item.plugin, "scale", Scale())
        self._seconds = seconds
        self._threads = threads if _blocks(item) else None
        self._origin = f"{item.component.distribution} {item.component.version}"
        self._warned = False

    async def verdict(self, trial: Trial) -> Verdict:
        """Return the metric's score of a trial, or its failure."""
        if self._threads is not None:
            loop, threads = asyncio.get_running_loop(), self._threads
            return await self._awaited(lambda: loop.run_in_executor(threads, self._metric.score, trial))
        began = time.monotonic()
        try:
            score = self._metric.score(trial)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a seam: what a metric raises is its failure
            return unscored(error)
        finally:
            self._warn_if_slow(time.monotonic() - began)
        if not isinstance(score, Score) and inspect.isawaitable(score):
            pending: Awaitable[object] = score
            return await self._awaited(lambda: pending)
        return validate_score(score, self._scale)

    async def _awaited(self, work: Callable[[], Awaitable[object]]) -> Verdict:
        late = TrialError(f"no score within {self._seconds:g} s", stage="score", kind="timeout")
        outcome = await attempt(work, seconds=self._seconds, late=late)
        if outcome.error is not None:
            return unscored(outcome.error)
        return validate_score(outcome.value, self._scale)

    def _warn_if_slow(self, seconds: float) -> None:
        if seconds > _SLOW and not self._warned:
            self._warned = True
            told = (
                f"the metric {self.label!r} of {self._origin} held up all trials for {seconds:.1f} s; make its score()"
                " async, or give its class `blocks: ClassVar[bool] = True` to have it called in a thread"
            )
            warnings.warn(told, PluginWarning, stacklevel=2)


@attrs.frozen
class _Grader:
    metrics: Sequence[_Measure]
    judges: Mapping[str, TrialJudge]
    rubrics: Sequence[Rubric]
    spec: ScoringSpec
    lacks: Callable[[str, str, str | None, int], bool]

    async def lines(self, trial: Trial) -> list[ScoreLine]:
        """Make the scores that a trial lacks. If a scorer fails, its line has no value."""
        lines = [
            self._line(trial, metric.label, await metric.verdict(trial))
            for metric in self.metrics
            if self.lacks(trial.id, metric.label, None, 1)
        ]
        for label, judge in self.judges.items():
            times = max((self.spec.repetitions[rubric.name, label] for rubric in self.rubrics), default=0)
            for repetition in range(1, times + 1):
                rubrics = [rubric for rubric in self.rubrics if self.lacks(trial.id, rubric.name, label, repetition)]
                if rubrics:
                    verdicts, judgement = await judge.judge_trial(trial, rubrics, repetition)
                    lines += [
                        self._line(trial, rubric.name, verdict, judge=label, judgement=judgement)
                        for rubric, verdict in zip(rubrics, verdicts, strict=True)
                    ]
        return lines

    def _line(
        self,
        trial: Trial,
        metric: str,
        verdict: Verdict,
        *,
        judge: str | None = None,
        judgement: Judgement | None = None,
    ) -> ScoreLine:
        return ScoreLine(
            trial=trial.id,
            sample=trial.sample.id,
            agent=trial.agent,
            condition=trial.condition,
            repetition=trial.repetition,
            metric=metric,
            judge=judge,
            score=verdict.score,
            failure=verdict.failure,
            judgement=judgement,
            digest=self.spec.digests[metric, judge],
        )


def _written(line: ScoreLine) -> tuple[ScoreLine, bytes]:
    """Return a score and its line. If its details cannot be written as JSON, the score is unscored."""
    try:
        return line, score_line(line)
    except (TypeError, ValueError, RecursionError) as error:
        verdict = unscored(TypeError(f"the details of the score cannot be written: {error}"))
        line = attrs.evolve(line, score=verdict.score, failure=verdict.failure)
        return line, score_line(line)
