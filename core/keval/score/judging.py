"""Asking a judge about one trial: blind, with a time limit, again if that can help; and checking what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs

from keval.config.evaluation import Execution
from keval.errors import TrialError
from keval.execute.attempts import AttemptOutcome, RetryPolicy, Stopwatch, failure_of, run_attempt
from keval.execute.models.exchange import ModelExchange
from keval.execute.models.gate import RequestScope
from keval.plan.plan import judge_seed, models_of
from keval.records.models import Asker
from keval.records.scores import LARGEST, Judgement, Rubric, Scale, Score
from keval.records.trial import Failure, Trial
from keval.seams.contexts import JudgeContext
from keval.seams.interfaces import ComparingJudge, Judge
from keval.seams.judgement_builder import JudgementBuilder
from keval.seams.use_meter import RunBudget

KeepJudgement: TypeAlias = Callable[[str, bytes], object]
"""Keeps the traffic of a judgement, given the id of the trial and what `RunTraffic.frame` makes of it."""
Counterpart: TypeAlias = Callable[[Trial, str], Trial | None]
"""Returns the trial of the same agent, question and repetition under another condition, if there is one."""

_TYPES = (float | int | None, str, bool, dict | Mapping)
"""The types of value, reason, neutral and details of a score."""


@attrs.frozen
class ScoreOutcome:
    """A score, and the failure behind it where the scorer failed."""

    score: Score
    failure: Failure | None = None


def validate_score(score: object, scale: Scale) -> ScoreOutcome:
    """Return a score, or a failure if it has the wrong type or leaves its scale."""
    if not isinstance(score, Score):
        return unscored(TypeError(f"expected a Score, got {type(score).__name__}"))
    value, fields = score.value, (score.value, score.reason, score.neutral, score.details)
    # `True` is an `int`, too.
    if not all(map(isinstance, fields, _TYPES)) or isinstance(value, bool):
        return unscored(TypeError(f"a Score is a number, a text, true or false, and a mapping; got {fields!r:.200}"))
    # A scale may be without an end, and statistics square its values.
    high = min(scale.high, LARGEST)
    if value is not None and not (scale.low <= value <= high):
        return _out_of_scale(score, f"the value {value} is outside the scale {scale.low:g} to {high:g}")
    return ScoreOutcome(score)


def validate_grade(score: object, rubric: Rubric) -> ScoreOutcome:
    """Return a judge's score, or a failure if it is not one of the rubric's levels, nor a share between them."""
    # A judge may fail at one rubric and grade by the others.
    if isinstance(score, TrialError):
        return unscored(score)
    verdict = validate_score(score, rubric.scale)
    value = verdict.score.value
    if rubric.kind != "claims" and verdict.failure is None and value is not None and value not in rubric.levels:
        told = f"the value {value:g} is not one of the levels {', '.join(map(str, rubric.levels))}"
        return _out_of_scale(verdict.score, told)
    return verdict


def unscored(error: BaseException) -> ScoreOutcome:
    """Return the verdict of a scorer that failed."""
    failure = failure_of(error, "score")
    return ScoreOutcome(Score(None, f"{failure.kind}: {failure.message}"), failure)


def _out_of_scale(score: Score, message: str) -> ScoreOutcome:
    return ScoreOutcome(Score(None, message, details=score.details), Failure("score", "out_of_scale", message))


class TrialJudge(Protocol):
    """Asks a judge about trials."""

    async def judge_trial(
        self, trial: Trial, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[list[ScoreOutcome], Judgement]:
        """Ask about a trial, and return a verdict per rubric, in their order, and the judgement."""
        ...


@attrs.frozen
class JudgeRunner:
    """Asks one judge, about any number of trials concurrently.

    `counterpart` finds what a judge that compares is handed. `keep` keeps the traffic, if the run keeps it.
    """

    label: str
    judge: Judge
    counterpart: Counterpart
    execution: Execution
    retry_policy: RetryPolicy
    exchange: ModelExchange
    run_budget: RunBudget
    keep: KeepJudgement | None = None
    _against: str | None = attrs.field(init=False)
    _wants_trial: bool = attrs.field(init=False)

    @_against.default
    def _condition_that_it_compares_with(self) -> str | None:
        return self.judge.against if isinstance(self.judge, ComparingJudge) else None

    @_wants_trial.default
    def _asks_who_wants_the_trial(self) -> bool:
        endpoints = [model.endpoint for model in models_of(self.judge).values()]
        return any(endpoint is not None and endpoint.wants_trial for endpoint in endpoints)

    async def judge_trial(
        self, trial: Trial, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[list[ScoreOutcome], Judgement]:
        """Ask about a trial, and return a verdict per rubric, in their order, and the judgement.

        A rubric that needs a golden answer is left out if the sample has none. A judge that compares is asked about no
        trial of the condition that it compares with, and about none without an answer to compare with.
        """
        against = None
        if (label := self._against) is not None:
            against = None if trial.condition == label else self.counterpart(trial, label)
            if (verdict := _uncompared(trial, label, against)) is not None:
                # `model_calls=0` says that nobody was asked: it is no judgement for agreement and costs.
                return [verdict] * len(rubrics), Judgement(repetition, model_calls=0)
        answered = trial.sample.answer is not None
        asked = [rubric for rubric in rubrics if answered or not rubric.needs_answer]
        judgement, graded = Judgement(repetition, model_calls=0), dict[str, ScoreOutcome]()
        if asked:
            judgement, graded = await self._metered(trial, against, asked, repetition)
        unanswerable = ScoreOutcome(Score(None, "the sample has no golden answer to judge by"))
        return [graded.get(rubric.name, unanswerable) for rubric in rubrics], judgement

    async def _metered(
        self, trial: Trial, against: Trial | None, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[Judgement, dict[str, ScoreOutcome]]:
        if not await self.run_budget.begin_judgement(self.label):
            verdict = unscored(TrialError("the budget of the run is used up", kind="budget"))
            return Judgement(repetition, model_calls=0), {rubric.name: verdict for rubric in rubrics}
        judgement = None
        try:
            judgement, graded = await self._ask(trial, against, rubrics, repetition)
            traffic, asker = self.exchange.traffic, Asker("judge", self.label, trial.id, repetition)
            if self.keep and traffic is not None and (frame := traffic.frame(asker)) is not None:
                self.keep(trial.id, frame)
            return judgement, graded
        finally:
            self.run_budget.end_judgement(self.label, judgement)

    async def _ask(
        self, trial: Trial, against: Trial | None, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[Judgement, dict[str, ScoreOutcome]]:
        builder = JudgementBuilder()
        failures: list[Failure] = []
        blinded, other = _blinded(trial), against and _blinded(against)
        while True:
            number = len(failures) + 1
            asker = Asker("judge", self.label, trial.id, repetition, number)
            outcome = await self._attempt(asker, (blinded, other), rubrics, builder)
            if outcome.error is None:
                return builder.judgement(repetition, failures), _graded(outcome.value, rubrics)
            outage = self.exchange.outage("judge", self.label)
            if outage or not outcome.retryable or self.retry_policy.exhausted(number):
                # After an outage every further request fails at once, and all that needs no model is still scored.
                verdict = unscored(TrialError(str(outage), kind="outage") if outage else outcome.error)
                return builder.judgement(repetition, failures), {rubric.name: verdict for rubric in rubrics}
            failures.append(failure_of(outcome.error, "score"))
            await self.retry_policy.wait(number, outcome.error)

    async def _attempt(
        self, asker: Asker, blinded: tuple[Trial, Trial | None], rubrics: Sequence[Rubric], builder: JudgementBuilder
    ) -> AttemptOutcome[Mapping[str, Score | TrialError]]:
        """Ask once about a trial, and the one to compare it with, and have the traffic kept or played."""
        seconds, stopwatch, repetition = self.execution.timeout_seconds, Stopwatch(), asker.repetition or 1
        late = TrialError(f"no judgement within {seconds:g} s", stage="score", kind="timeout", retryable=True)
        with self.exchange.attempt(asker, stopwatch) as traffic:
            trial, against = blinded
            scope = RequestScope(stopwatch, builder.requests, traffic=traffic)
            async with self.exchange.request_scope(asker, scope) as headers:
                # For keval's gateway, without the trial's id, which would tell whose answer is judged.
                own = {"x-keval-repetition": str(repetition)} if self._wants_trial else {}
                context = JudgeContext(
                    repetition=repetition,
                    attempt=asker.attempt or 1,
                    # not by the condition, so that the answers of all arms are judged alike
                    seed=judge_seed(self.execution.seed, trial.sample.id, repetition),
                    model_headers={**own, **headers},
                    against=against,
                    builder=builder,
                )
                limit = seconds if traffic is None else traffic.limit(seconds)
                outcome = await run_attempt(
                    lambda: self.judge.grade(trial, rubrics, context), seconds=limit, late=late, stopwatch=stopwatch
                )
            error = None if traffic is None else traffic.overruled(outcome.failure, late)
            return outcome if error is None else AttemptOutcome.failed(error)


def _uncompared(trial: Trial, label: str, against: Trial | None) -> ScoreOutcome | None:
    """Return what a trial gets without being compared with another one; `None` if it is to be compared."""
    if trial.condition == label:
        return ScoreOutcome(Score(0.0, f"the answers under {label!r} are what others are compared with"))
    if against is None or against.failure is not None:
        told = "there is no trial" if against is None else "the trial failed"
        return ScoreOutcome(Score(None, f"{told} under {label!r} to compare with"))
    return None


def _graded(scores: object, rubrics: Sequence[Rubric]) -> dict[str, ScoreOutcome]:
    if not isinstance(scores, Mapping):
        told = TypeError(f"the judge returned {type(scores).__name__} instead of a mapping of scores")
        return {rubric.name: unscored(told) for rubric in rubrics}
    missing = TrialError("the judge returned no score for this rubric", stage="score", kind="no_score")
    return {rubric.name: validate_grade(scores.get(rubric.name, missing), rubric) for rubric in rubrics}


def _blinded(trial: Trial) -> Trial:
    """Remove from a trial what would tell a judge whose answer it is."""
    # The system prompt tells which condition it was.
    transcript = trial.transcript and attrs.evolve(trial.transcript, instructions=None)
    return attrs.evolve(
        trial,
        id="",
        agent="",
        condition="",
        model=None,
        characteristics={},
        attempts=(),
        complied=None,
        transcript=transcript,
    )
