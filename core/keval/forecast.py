"""Forecasts: what a planned run would take in tokens, money and time, at the rates of a pilot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from keval.manifest import Manifest
from keval.plan.plan import Plan
from keval.summary import ArmTrials, JudgingTotal, Summary, UsageTotal

__all__ = ["Forecast", "forecast", "trials_for"]


@attrs.frozen
class Forecast:
    """What a number of trials would take at the pilot's rates, agents and judges together; `None` is unknown."""

    questions: int
    trials: int
    tokens: float | None
    usd: float | None
    seconds: float | None


def trials_for(plan: Plan, questions: int) -> int:
    """Return how many trials so many questions take."""
    return math.ceil(plan.trial_count * questions / len(plan.samples))


def forecast(plan: Plan, questions: int, pilot: tuple[Manifest, Summary] | None) -> Forecast:
    """Return what so many questions would take at the pilot's rates."""
    trials = trials_for(plan, questions)
    if pilot is None:
        return Forecast(questions, trials, None, None, None)
    arms = {(arm.agent, arm.condition): arm for arm in pilot[1].trials if arm.trials}
    planned = [(agent.label, arm.label) for agent in plan.agents for arm in plan.arms]
    if not all(arm in arms for arm in planned):
        return Forecast(questions, trials, None, None, None)
    each = trials / len(planned)
    judging = [judged for judged in pilot[1].judging if (judged.agent, judged.condition) in planned]

    def total(parts: Sequence[tuple[float | None, int]]) -> float | None:
        """Add up amounts that so many trials of the pilot took."""
        known = [amount / count for amount, count in parts if amount is not None]
        return each * sum(known) if len(known) == len(parts) else None

    counts = {arm: arms[arm].trials for arm in planned}
    spent: list[tuple[ArmTrials | JudgingTotal, int]] = [(arms[arm], counts[arm]) for arm in planned]
    spent += [(judged, counts[judged.agent, judged.condition]) for judged in judging]
    usages = [(spender.usage, count) for spender, count in spent]
    # The cost of a trial has that of its attempts that were given up, and its usage has not.
    usages += [(arms[arm].given_up.usage, counts[arm]) for arm in planned if arms[arm].given_up.model_calls]
    return Forecast(
        questions=questions,
        trials=trials,
        tokens=total([(_tokens(usage), count) for usage, count in usages]),
        usd=total([(None if spender.cost.unknown else spender.cost.usd, count) for spender, count in spent]),
        seconds=_seconds(plan, trials, *pilot),
    )


def _tokens(usage: UsageTotal) -> int | None:
    """Return input and output tokens; `None` if some are unknown, as a sum of the others would look like all."""
    if usage.input_tokens is None or usage.output_tokens is None or usage.unknown:
        return None
    return usage.input_tokens + usage.output_tokens


def _seconds(plan: Plan, trials: int, manifest: Manifest, pilot: Summary) -> float | None:
    """Return how long so many trials take at the pilot's pace, with as many at once as are planned."""
    done = sum(arm.trials for arm in pilot.trials)
    if pilot.elapsed is None or not done:
        return None
    before = manifest.config.get("execution", {}).get("max_concurrent")
    now = plan.evaluation.execution.max_concurrent
    faster = now / before if isinstance(before, int) and before > 0 else 1.0
    return pilot.elapsed / done * trials / faster
