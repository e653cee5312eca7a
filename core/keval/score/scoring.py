"""Scoring an answered trial by every metric and judge."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import random
import time
import warnings
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import attrs

from keval.config.evaluation import Execution
from keval.config.variables import SECRET_OPTION
from keval.errors import PluginWarning, TrialError
from keval.execute.attempts import RetryPolicy, run_attempt
from keval.execute.models.exchange import ModelExchange
from keval.files import read_input
from keval.plan.plan import ResolvedPlugin, Scorers
from keval.records.manifest import AgentRating, Ratings
from keval.records.models import Endpoint, Model
from keval.records.scores import Judgement, Rubric, Scale, Score, ScoreLine, Scorer
from keval.records.trial import Trial
from keval.redaction import Redactor
from keval.score.judging import (
    Counterpart,
    JudgeRunner,
    KeepJudgement,
    ScoreOutcome,
    TrialJudge,
    unscored,
    validate_score,
)
from keval.seams.interfaces import AgentRater, Judge, Metric, has_flag
from keval.seams.registry import Component
from keval.seams.use_meter import RunBudget
from keval.store.scores import ScoringSpec
from keval.store.serialization import dump, read_score, score_line

_SLOW = 0.5
"""Seconds for which a metric may block the event loop before a warning names it."""
_LONGEST_TURN = 0.002
"""Seconds after which metrics let other work of the event loop go on."""
_THREADS = 2 * (os.cpu_count() or 1)


@attrs.frozen
class ScoredTrial:
    """A trial with its new scores, as records and as the lines that are `written`."""

    trial: Trial
    lines: tuple[ScoreLine, ...] = ()
    written: tuple[bytes, ...] = ()

    def write(self, write: Callable[[bytes], None], redact: Redactor) -> list[ScoreLine]:
        """Write the scores, and return them as they are written, which is without secrets."""
        written = redact.lines(self.written)
        if written:
            write(b"".join(line + b"\n" for line in written))
        told = zip(self.lines, self.written, written, strict=True)
        return [line if before == after else read_score(after) for line, before, after in told]

    def without(self, judges: Container[str]) -> ScoredTrial:
        """Return the trial without the scores of some judges."""
        both = zip(self.lines, self.written, strict=True)
        return ScoredTrial(self.trial, *zip(*(each for each in both if each[0].judge not in judges), strict=True))


class TrialGrader(Protocol):
    """Scores trials, any number of them concurrently."""

    async def score(self, trial: Trial, without: Container[str] = ()) -> ScoredTrial:
        """Make the scores that a trial lacks, but for those of the judges `without`; none if the trial failed.

        If a scorer fails, its line has no value.
        """
        ...


@attrs.define(eq=False)
class _Turn:
    """Lets metrics hold up the event loop for a short time only, those of all trials taken together.

    Agents whose response times are measured run in the same loop, as do Ctrl-C and the progress display.
    """

    _lock: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _held: float = attrs.field(default=0.0, init=False)

    async def __aenter__(self) -> _Turn:
        await self._lock.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()

    async def spent(self, seconds: float) -> None:
        """Note that a metric took so long, and let other work go on if metrics have had their time."""
        self._held += seconds
        if self._held >= _LONGEST_TURN:
            await asyncio.sleep(0)
            self._held = 0.0


Lacks: TypeAlias = Callable[[Trial, str, str | None, int], bool]
"""Takes a trial, a metric, a judge and its repetition, and returns whether that score is wanted and missing."""


@attrs.frozen(eq=False)
class Grader:
    """Scores trials, any number of them concurrently, by metrics and judges, as `spec` wants it."""

    judges: Mapping[str, TrialJudge]
    rubrics: Sequence[Rubric]
    spec: ScoringSpec
    lacks: Lacks
    _metrics: Sequence[_Measure]
    _turn: _Turn = attrs.field(factory=_Turn, init=False)

    @classmethod
    @contextmanager
    def of(
        cls,
        scorers: Scorers,
        judges: Mapping[str, Judge],
        execution: Execution,
        *,
        spec: ScoringSpec,
        lacks: Lacks,
        exchange: ModelExchange,
        run_budget: RunBudget,
        counterpart: Counterpart,
        keep: KeepJudgement | None = None,
        judging: Callable[[JudgeRunner], TrialJudge] = lambda runner: runner,
    ) -> Iterator[Grader]:
        """Yield a grader of these scorers; `judges` are the plan's, by label, with their models resolved.

        `judging` returns what asks a judge in place of its runner. Metrics that block have threads while the block
        runs.
        """
        retry_policy = RetryPolicy(execution.retry, asyncio.sleep, random.Random(execution.seed))
        runners = [
            JudgeRunner(label, judge, counterpart, execution, retry_policy, exchange, run_budget, keep)
            for label, judge in judges.items()
        ]
        # It starts none before a metric that blocks is called.
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="keval-metric")
        try:
            yield cls(
                {runner.label: judging(runner) for runner in runners},
                scorers.rubrics,
                spec,
                lacks,
                [_Measure(item, execution.timeout_seconds, threads) for item in scorers.metrics],
            )
        finally:
            threads.shutdown(wait=False, cancel_futures=True)  # one that was late may never return

    async def score(self, trial: Trial, without: Container[str] = ()) -> ScoredTrial:
        """Make the scores that a trial lacks; see `TrialGrader`."""
        if trial.failure is not None:
            return ScoredTrial(trial)
        lines = [*await self._measured(trial), *await self._judged(trial, without)]
        return ScoredTrial(trial, *zip(*map(written_score, lines), strict=True))

    async def _measured(self, trial: Trial) -> list[ScoreLine]:
        wanted = [metric for metric in self._metrics if self.lacks(trial, metric.label, None, 1)]
        if not wanted:
            return []
        verdicts: dict[str, ScoreOutcome] = {}
        async with self._turn as turn:
            for metric in wanted:
                if metric.is_immediate:
                    began = time.monotonic()
                    verdicts[metric.label] = await metric.verdict(trial)
                    await turn.spent(time.monotonic() - began)
        # Outside of the turn: these await, so that other trials' metrics need not wait for them.
        for metric in wanted:
            if not metric.is_immediate:
                verdicts[metric.label] = await metric.verdict(trial)
        return [score_of(trial, self.spec, metric.label, verdicts[metric.label]) for metric in wanted]

    async def _judged(self, trial: Trial, without: Container[str]) -> list[ScoreLine]:
        lines: list[ScoreLine] = []
        for label, judge in self.judges.items():
            if label in without:
                continue
            times = max((self.spec.repetitions.get((rubric.name, label), 0) for rubric in self.rubrics), default=0)
            for repetition in range(1, times + 1):
                rubrics = [rubric for rubric in self.rubrics if self.lacks(trial, rubric.name, label, repetition)]
                if rubrics:
                    verdicts, judgement = await judge.judge_trial(trial, rubrics, repetition)
                    lines += [
                        score_of(trial, self.spec, rubric.name, verdict, judge=label, judgement=judgement)
                        for rubric, verdict in zip(rubrics, verdicts, strict=True)
                    ]
        return lines


class _Measure:
    """One metric, called in the event loop, or in a thread if it blocks."""

    def __init__(self, item: ResolvedPlugin, seconds: float, threads: ThreadPoolExecutor) -> None:
        self.label = item.label
        self._metric: Metric = item.plugin
        self._scale = getattr(item.plugin, "scale", Scale())
        self._seconds = seconds
        self._threads = threads if has_flag(item.plugin, "blocks") else None
        self._origin = f"{item.component.distribution} {item.component.version}"
        self._warned = False
        # Whether it is done when it returns, without a thread or an await.
        self.is_immediate = self._threads is None and not inspect.iscoroutinefunction(self._metric.score)

    async def verdict(self, trial: Trial) -> ScoreOutcome:
        if self._threads is not None:
            call = self._threads.submit(self._metric.score, trial)
            outcome = await self._awaited(lambda: asyncio.wrap_future(call))
            if not call.cancelled():
                return outcome
            # Not its own slowness: a call that is late keeps its thread, as nothing can end it.
            told = f"no thread was free within {self._seconds:g} s: calls of metrics that block hold all {_THREADS}"
            return unscored(TrialError(told, stage="score", kind="timeout"))
        if not self.is_immediate:
            return await self._awaited(lambda: self._later(trial))
        began = time.monotonic()
        try:
            score = self._metric.score(trial)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a seam: what a metric raises is its failure
            return unscored(error)
        finally:
            self._warn_if_slow(time.monotonic() - began)
        if not isinstance(score, Score) and inspect.isawaitable(score):
            self.is_immediate = False  # so the next trial's other metrics do not wait for it
            pending: Awaitable[object] = score
            return await self._awaited(lambda: pending)
        return validate_score(metric_score(score), self._scale)

    async def _later(self, trial: Trial) -> object:
        score: object = self._metric.score(trial)
        return await score if inspect.isawaitable(score) else score

    async def _awaited(self, work: Callable[[], Awaitable[object]]) -> ScoreOutcome:
        late = TrialError(f"no score within {self._seconds:g} s", stage="score", kind="timeout")
        outcome = await run_attempt(work, seconds=self._seconds, late=late)
        if outcome.error is not None:
            return unscored(outcome.error)
        return validate_score(metric_score(outcome.value), self._scale)

    def _warn_if_slow(self, seconds: float) -> None:
        if seconds > _SLOW and not self._warned:
            self._warned = True
            told = (
                f"the metric {self.label!r} of {self._origin} held up all trials for {seconds:.1f} s; make its score()"
                " async, or give its class `blocks: ClassVar[bool] = True` to have it called in a thread"
            )
            warnings.warn(told, PluginWarning, stacklevel=2)


def metric_score(returned: object) -> object:
    """Return the score that a metric means by a number, or by true or false; anything else as it is."""
    # first, as a bool is an int
    if isinstance(returned, bool):
        return Score(float(returned))
    return Score(returned) if isinstance(returned, int | float) else returned


def score_of(
    trial: Trial,
    spec: ScoringSpec,
    metric: str,
    verdict: ScoreOutcome,
    *,
    judge: str | None = None,
    judgement: Judgement | None = None,
) -> ScoreLine:
    """Return the score that a verdict gives a trial."""
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
        digest=spec.digests[metric, judge],
    )


def written_score(line: ScoreLine) -> tuple[ScoreLine, bytes]:
    """Return a score and its line. If its details cannot be written as JSON, the score is unscored."""
    try:
        return line, score_line(line)
    except (TypeError, ValueError, RecursionError) as error:
        verdict = unscored(TypeError(f"the details of the score cannot be written: {error}"))
        line = attrs.evolve(line, score=verdict.score, failure=verdict.failure)
        return line, score_line(line)


def scorer_digests(scorers: Scorers, endpoints: Mapping[str, Endpoint], seed: int) -> dict[Scorer, str]:
    """Return a digest per scorer.

    It covers the scorer's package and version, its options and the content of their files, and for a judge also its
    endpoint, its rubric and the seed. `endpoints` are those that model providers found, by `provider/name`.
    """
    metrics: dict[Scorer, str] = {
        (item.label, None): _digest(_described(item.component, item.plugin, endpoints)) for item in scorers.metrics
    }
    graded: dict[Scorer, str] = {
        (rubric.name, item.label): _digest(
            [_described(item.component, item.plugin, endpoints), rubric_digest(rubric), seed]
        )
        for item in scorers.judges
        for rubric in scorers.graded_by(item)
    }
    return {**metrics, **graded}


def rate_agents(scorers: Scorers, agents: Mapping[str, Mapping[str, Any]]) -> Ratings:
    """Return what metrics say of agents whatever they answer; `agents` are the characteristics of each, by label.

    An agent is left out of what a metric cannot say. A metric that fails is named in a warning.
    """
    found: dict[str, dict[str, AgentRating]] = {}
    for item in scorers.metrics:
        if not isinstance(item.plugin, AgentRater):
            continue
        for label, characteristics in agents.items():
            verdict = _rating(item, characteristics)
            if verdict.failure is not None:
                told = (
                    f"the metric {item.label!r} of {item.component.distribution} {item.component.version} cannot rate"
                    f" the agent {label!r}: {verdict.failure.message}"
                )
                warnings.warn(told, PluginWarning, stacklevel=2)
            elif verdict.score.value is not None and not verdict.score.neutral:
                rating = AgentRating(verdict.score.value, verdict.score.reason)
                found.setdefault(item.label, {})[label] = rating
    return found


def _rating(item: ResolvedPlugin, characteristics: Mapping[str, Any]) -> ScoreOutcome:
    try:
        rating = metric_score(item.plugin.rate_agent(characteristics))
        return validate_score(rating, getattr(item.plugin, "scale", Scale()))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a seam: what a metric raises is its failure
        return unscored(error)


def rubric_digest(rubric: Rubric) -> str:
    """Return the digest of a rubric's content, without its name."""
    # Nothing for the kind that was once the only one, so that its digests stay as they were.
    kind = [] if rubric.kind == "levels" else [rubric.kind, rubric.share]
    return _digest([rubric.instructions, sorted(rubric.levels.items()), rubric.needs_answer, *kind])


def _described(component: Component, plugin: Any, endpoints: Mapping[str, Endpoint]) -> list[Any]:
    fields = attrs.fields(type(plugin)) if attrs.has(type(plugin)) else ()
    options = {field.name: _value(getattr(plugin, field.name), endpoints) for field in fields if field.init}
    # A key changes no score.
    kept = {name: value for name, value in options.items() if not SECRET_OPTION.fullmatch(name)}
    # By its name, as a class that moves to another module scores as before.
    return [component.name, component.distribution, component.version, kept]


def _value(value: Any, endpoints: Mapping[str, Endpoint]) -> Any:
    if isinstance(value, Path) and value.is_file():
        return hashlib.sha256(read_input(value)).hexdigest()  # its content counts, and not its path
    if not isinstance(value, Model):
        return value
    # Not a proxy's endpoint, and not that of a simulated model: their ports differ between runs.
    endpoint = value.endpoint or endpoints.get(str(value))
    urls = endpoint.urls if endpoint and not endpoint.simulated else {}
    return [str(value), dict(urls)]


def _digest(data: Any) -> str:
    return hashlib.sha256(dump(data)).hexdigest()[:12]
