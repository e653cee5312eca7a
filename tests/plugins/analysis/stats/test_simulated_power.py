"""Power by simulation: what is promised comes true in runs that are drawn and judged anew."""

from __future__ import annotations

import numpy as np
import pytest

from keval_analysis.stats.paired import Differences as Drawn, Rule, holm
from keval_analysis.stats.simulated_power import Differences, SimulatedRuns
from keval_analysis.stats.units import FloatArray

RNG = np.random.default_rng(11)
PILOTS: dict[str, tuple[FloatArray, float, float]] = {
    "0/1": (np.repeat([-1.0, 0.0, 1.0], [3, 30, 7]), 0.2, 1.0),
    "0/1, 3 repetitions": (np.repeat([-1 / 3, 0.0, 1 / 3, 2 / 3], [5, 25, 7, 3]), 0.15, 1.0),
    "1 to 5": (np.repeat([-1.0, 0.0, 1.0, 2.0], [4, 24, 9, 3]), 0.4, 4.0),
    "continuous": (RNG.normal(0.05, 0.2, 40), 0.1, 1.0),
    "worse": (np.repeat([-1.0, 0.0, 1.0], [12, 26, 2]), 0.2, 1.0),
}


def seen(values: FloatArray) -> Differences:
    return Differences(values, np.full(len(values), 1 / len(values)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PILOTS)
def test_the_promised_questions_show_the_effect_as_often_as_promised(kind: str) -> None:
    """One real effect among eight metrics, the others without any, judged by Holm's method."""
    values, effect, span = PILOTS[kind]
    family = 8
    n = SimulatedRuns(seen(values), span, 0.05 / family).questions(effect, 0.8)
    assert n is not None
    rng, real = np.random.default_rng(12), seen(values).with_mean(effect)
    null = seen(np.concatenate([values - values.mean(), values.mean() - values]))

    def drawn(of: Differences, runs: int) -> FloatArray:
        rows = rng.choice(of.values, (runs, n), p=of.weights)
        return Rule.on([Drawn(row, None, span) for row in rows]).p()

    runs = 500
    families = np.column_stack([drawn(real, runs), *(drawn(null, runs) for _ in range(family - 1))])
    sure = np.mean([(holm(each.tolist())[0] or 0.0) <= 0.05 for each in families])

    assert pytest.approx(0.8, abs=0.06) == sure


@pytest.mark.slow
@pytest.mark.parametrize("kind", PILOTS)
def test_what_questions_show_is_what_needs_so_many(kind: str) -> None:
    values, _, span = PILOTS[kind]
    runs = SimulatedRuns(seen(values), span, 0.05)

    effect = runs.detectable(60, 0.8)

    assert effect is not None
    assert pytest.approx(0.8, abs=0.06) == runs.power(effect, 60)
    assert pytest.approx(60, rel=0.2) == runs.questions(effect, 0.8)


def test_questions_change_by_as_much_as_in_the_pilot() -> None:
    reweighted = seen(PILOTS["0/1"][0]).with_mean(0.3)

    assert {-1.0, 0.0, 1.0} == {*reweighted.values.tolist()}
    assert pytest.approx((1.0, 0.3)) == (reweighted.weights.sum(), float(reweighted.weights @ reweighted.values))


def test_an_effect_beyond_what_was_seen_shifts_all_questions() -> None:
    values = np.array([0.1, -0.1, 0.05, -0.05])

    shifted = seen(values).with_mean(0.5)

    assert pytest.approx(values + 0.5) == shifted.values
    assert pytest.approx(seen(values).sd) == shifted.sd


def test_the_same_is_planned_each_time() -> None:
    values, effect, span = PILOTS["1 to 5"]

    assert 1 == len({SimulatedRuns(seen(values), span, 0.01, seed=3).questions(effect, 0.9) for _ in range(3)})
    assert SimulatedRuns(seen(values), span, 0.05).questions(1e-9, 0.8) is None
    assert SimulatedRuns(seen(values), span, 0.05).detectable(2, 0.8) is None
