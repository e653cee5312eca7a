"""Asking judges: blind, each within its time, again where that can help, and with a record of what it took."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import attrs

from keval.config.evaluation import Execution
from keval.errors import TrialError
from keval.interfaces import Judge
from keval.judging import JudgementRecorder, Judging
from keval.records import Failure, Trial
from keval.run.cancellation import apart, being_cancelled
from keval.run.checked import Scored, failure_of, graded, unscored
from keval.run.plan import judge_seed, models_of
from keval.run.retry import backoff
from keval.scores import Judgement, Rubric, Score

__all__ = ["JudgeRunner"]


@attrs.frozen
class JudgeRunner:
    """Asks one judge; for any number of trials at once. `to_gateway` says that its model wants keval's headers."""

    judge: Judge
    execution: Execution
    sleep: Callable[[float], Awaitable[None]]
    rng: random.Random
    to_gateway: bool

    @classmethod
    def of(
        cls, judge: Judge, execution: Execution, sleep: Callable[[float], Awaitable[None]], rng: random.Random
    ) -> JudgeRunner:
        endpoints = [model.endpoint for model in models_of(judge).values()]
        wanted = any(endpoint is not None and endpoint.wants_trial for endpoint in endpoints)
        return cls(judge, execution, sleep, rng, wanted)

    async def judge_trial(
        self, trial: Trial, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[list[Scored], Judgement]:
        """Ask about a trial, and return a score per rubric, in their order, and what that took.

        A rubric that needs a golden answer is not asked for where there is none.
        """
        answered = trial.sample.answer is not None
        asked = [rubric for rubric in rubrics if answered or not rubric.needs_answer]
        judgement, scored = Judgement(repetition, model_calls=0), dict[str, Scored]()
        if asked:
            judgement, scored = await self._asked(_blinded(trial), asked, repetition)
        unanswerable = (Score(None, "the sample has no golden answer to judge by"), None)
        return [scored.get(rubric.name, unanswerable) for rubric in rubrics], judgement

    async def _asked(
        self, trial: Trial, rubrics: Sequence[Rubric], repetition: int
    ) -> tuple[Judgement, dict[str, Scored]]:
        recorder = JudgementRecorder()
        attempts: list[Failure] = []
        while True:
            judging = Judging(
                repetition=repetition,
                attempt=len(attempts) + 1,
                seed=judge_seed(self.execution.seed, trial.sample.id, repetition),
                # None that tells which trial is judged, as a trial's id names agent and condition.
                model_headers={"x-keval-repetition": str(repetition)} if self.to_gateway else {},
                recorder=recorder,
            )
            limit = asyncio.timeout(self.execution.timeout_seconds)
            try:
                async with limit:
                    scores = await apart(self.judge.grade(trial, rubrics, judging))
                missing = TrialError("the judge returned no score for this rubric", stage="score", kind="no_score")
                scored = {rubric.name: graded(scores.get(rubric.name, missing), rubric) for rubric in rubrics}
                return recorder.judgement(repetition, attempts), scored
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                # The seam: whatever a judge raises leaves the trial unscored, unless it is the run that ends.
                if being_cancelled():
                    raise asyncio.CancelledError from error
                told = _timeout(self.execution) if limit.expired() else error
                again = isinstance(told, TrialError) and told.retryable
                if not again or len(attempts) + 1 >= self.execution.retry.max_attempts:
                    return recorder.judgement(repetition, attempts), {r.name: unscored(told) for r in rubrics}
                attempts.append(failure_of(told))
                asked = told.retry_after if isinstance(told, TrialError) else None
                await self.sleep(backoff(self.execution.retry, len(attempts), asked, self.rng))


def _blinded(trial: Trial) -> Trial:
    """Take out of a trial what would tell a judge whose it is."""
    return attrs.evolve(
        trial, id="", agent="", condition="", model=None, characteristics=None, attempts=(), complied=None
    )


def _timeout(execution: Execution) -> TrialError:
    return TrialError(f"no judgement within {execution.timeout_seconds:g} s", stage="score", kind="timeout")
