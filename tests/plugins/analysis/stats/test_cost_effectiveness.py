"""Quality beside its cost: what a dollar or 1,000 tokens buy, the Pareto front, and what answers took."""

from __future__ import annotations

import statistics
from array import array

import numpy as np
import pytest
from hypothesis import given, strategies as st

from keval import Scale, ToolCall, Transcript, Usage
from keval_analysis.findings.effects import Expense
from keval_analysis.stats.cost_effectiveness import (
    CostEffectiveness,
    Expenses,
    QualityAndCost,
    cost_effectiveness,
)
from keval_analysis.stats.intervals import quantile

LEVELS = Scale(1, 5)
costs = st.none() | st.integers(0, 6).map(float)
offers = st.lists(st.builds(QualityAndCost, st.none() | st.integers(0, 4).map(float), costs, costs), max_size=6)


def front(scale: Scale, *arms: QualityAndCost) -> list[bool | None]:
    return [found.pareto for found in cost_effectiveness(scale, arms)]


def test_worth_counts_from_the_lower_end_of_the_scale() -> None:
    (found,) = cost_effectiveness(LEVELS, [QualityAndCost(4.0, usd=0.02, tokens=1500)])

    assert CostEffectiveness(per_usd=150.0, per_1000_tokens=2.0, pareto=True) == found


@pytest.mark.parametrize("offer", [QualityAndCost(None, 1, 1), QualityAndCost(3.0, 0.0, 0), QualityAndCost(3.0)])
def test_without_a_mean_or_a_cost_a_dollar_buys_nothing_that_is_known(offer: QualityAndCost) -> None:
    (found,) = cost_effectiveness(LEVELS, [offer])

    assert (None, None) == (found.per_usd, found.per_1000_tokens)


def test_where_less_is_better_a_dollar_buys_no_amount_of_it() -> None:
    seconds = Scale(0, float("inf"), better="lower")

    assert [CostEffectiveness(pareto=False), CostEffectiveness(pareto=True)] == cost_effectiveness(
        seconds, [QualityAndCost(9.0, 2.0, 10), QualityAndCost(1.0, 1.0, 10)]
    )


def test_an_arm_is_on_the_front_unless_another_is_as_good_for_less() -> None:
    cheap, dear, dominated, same = (
        QualityAndCost(0.6, 1.0),
        QualityAndCost(0.9, 5.0),
        QualityAndCost(0.6, 2.0),
        QualityAndCost(0.6, 1.0),
    )

    assert [True, True, False, True] == front(Scale(), cheap, dear, dominated, same)


def test_tokens_stand_in_for_dollars_where_one_is_unknown_or_free() -> None:
    unknown, priced, silent = (
        QualityAndCost(0.9, None, 100),
        QualityAndCost(0.5, 1.0, 200),
        QualityAndCost(0.4, 1.0, None),
    )

    assert [True, False, None] == front(Scale(), unknown, priced, silent)
    assert [True, False] == front(Scale(), QualityAndCost(0.9, 0.0, 100), QualityAndCost(0.9, 0.0, 200))


@given(offers)
def test_the_front_is_what_nothing_dominates(arms: list[QualityAndCost]) -> None:
    found = front(Scale(0, 4), *arms)

    scored = [arm for arm in arms if arm.mean is not None]
    dollars = all(arm.usd for arm in scored)
    for arm, on_front in zip(arms, found, strict=True):
        cost = arm.usd if dollars else arm.tokens
        assert (on_front is None) == (arm.mean is None or cost is None)
        if on_front is not None and arm.mean is not None and cost is not None:
            costs = [(other.mean or 0.0, other.usd if dollars else other.tokens) for other in scored]
            better = [(m, c) for m, c in costs if c is not None and (m, -c) != (arm.mean, -cost)]
            assert on_front == (not any(m >= arm.mean and c <= cost for m, c in better))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_a_quantile_is_numpys(values: list[float], share: float) -> None:
    assert quantile(array("d", values), share) == pytest.approx(float(np.quantile(values, share)), abs=1e-6)


def test_there_is_no_quantile_of_nothing() -> None:
    assert (None, 3.0) == (quantile([], 0.5), quantile([3.0], 0.95))


def test_expenses_are_means_over_the_repetitions_of_a_sample() -> None:
    calls = (ToolCall("look_up"), ToolCall("look_up"))
    told = Transcript(tool_calls=calls, usage=Usage(100, 20), model_calls=2, duration=2.0)
    found = Expenses()

    found.add(0, told, 0.5)
    found.add(0, Transcript(usage=Usage(60, 20), model_calls=1, duration=4.0), 0.25)
    found.add(1, Transcript(model_calls=1, unlisted_calls=None), None)
    found.add(2, Transcript(model_calls=0, duration=0.0), 0.0)

    def by_sample(name: Expense) -> dict[int, float]:
        return dict(zip(found.values(name).samples, found.values(name).means, strict=True))

    assert ({0: 3.0, 2: 0.0}, {0: 100.0, 2: 0.0}) == (by_sample("seconds"), by_sample("tokens"))
    assert ({0: 0.375, 2: 0.0}, {0: 1.0, 2: 0.0}) == (by_sample("usd"), by_sample("tool_calls"))
    assert statistics.median(found.durations) == quantile(found.durations, 0.5) == 2.0
