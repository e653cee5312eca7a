"""Intervals of means; bench/verdicts.py measures how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from keval_analysis.stats.intervals import Interval, Values, mean_intervals
from keval_analysis.stats.units import FloatArray, IntArray, Units, hall, moments, t_quantile
from keval_analysis.stats.weighted_means import bounded_ends

ENDLESS = (-math.inf, math.inf)


def interval(
    values: FloatArray, clusters: IntArray | None = None, scale: tuple[float, float] = ENDLESS
) -> Interval | None:
    return mean_intervals([Values(values, clusters, *scale)])[0]


def ends(found: Interval | None) -> tuple[float, float]:
    assert found is not None
    return found.low, found.high


@pytest.mark.parametrize(("passed", "n"), [(15, 15), (14, 15), (0, 8), (93, 100), (2, 30)])
def test_rare_zeros_or_ones_have_the_mid_p_interval_of_a_proportion(passed: int, n: int) -> None:
    found = interval(np.repeat([1.0, 0.0], [passed, n - passed]), scale=(0, 1))

    def mid_p(share: float) -> float:
        seen = stats.binom(n, share)
        return float(seen.sf(passed) + seen.pmf(passed) / 2)

    low = 0.0 if not passed else optimize.brentq(lambda share: mid_p(share) - 0.025, 1e-9, 1 - 1e-9)
    high = 1.0 if passed == n else optimize.brentq(lambda share: mid_p(share) - 0.975, 1e-9, 1 - 1e-9)
    assert found is not None
    assert "bounded" == found.method
    assert pytest.approx((low, high), abs=1e-6) == ends(found)


def test_values_that_scatter_symmetrically_have_the_t_interval() -> None:
    values = np.array([*np.linspace(-1, 1, 21), *np.linspace(-1, 1, 21)])

    found = interval(values)

    assert found is not None
    assert "skew_t" == found.method
    assert pytest.approx(stats.t.interval(0.95, 41, values.mean(), stats.sem(values)), rel=1e-9) == ends(found)


@pytest.mark.parametrize("n", [3, 8, 40])
def test_no_interval_is_narrower_than_that_of_t(n: int) -> None:
    drawn = np.random.default_rng(n).exponential(size=(50, n)) ** 2
    for values, found in zip(drawn, mean_intervals([Values(row, None, *ENDLESS) for row in drawn]), strict=True):
        low, high = ends(found)
        t = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
        assert (True, True) == (low <= t[0] + 1e-9, high >= t[1] - 1e-9)
        assert (low, high) != pytest.approx(t)


def test_the_interval_of_skewed_values_ends_where_halls_transformation_says() -> None:
    values = np.random.default_rng(1).exponential(size=20)
    found = moments(Units.of([(values, None)]))

    low, high = ends(interval(values))

    reach = t_quantile(19, 0.95)
    assert pytest.approx(-reach) == hall((found.mean - high) / found.stderr, found.skewness)[0]
    assert pytest.approx((found.mean - reach * found.stderr)[0]) == low
    assert pytest.approx((-high, -low)) == ends(interval(-values))


@pytest.mark.parametrize(("seed", "factor", "shift"), [(1, 4.0, 1.0), (2, 0.5, -3.0), (3, 100.0, 0.0)])
def test_intervals_move_with_the_scale_and_turn_with_it(seed: int, factor: float, shift: float) -> None:
    values = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], size=20, p=[0.05, 0.1, 0.85])

    low, high = ends(interval(values, scale=(0, 1)))

    moved = interval(values * factor + shift, scale=(shift, factor + shift))
    turned = interval(1 - values, scale=(0, 1))
    assert pytest.approx((low * factor + shift, high * factor + shift), abs=1e-5) == ends(moved)
    assert pytest.approx((1 - high, 1 - low), abs=1e-6) == ends(turned)


def test_equal_values_are_bounded_by_the_scale_and_unknown_on_one_without_an_end() -> None:
    assert pytest.approx((0.05 ** (1 / 15), 1.0), abs=1e-6) == ends(interval(np.ones(15), scale=(0, 1)))
    assert [None, None] == [interval(np.ones(15), scale=(0, math.inf)), interval(np.ones(1), scale=(0, 1))]


def test_equal_values_have_the_interval_of_the_general_rule() -> None:
    found = interval(np.full(12, 0.7), scale=(0, 1))

    assert pytest.approx(bounded_ends([([0.7] * 12, None)], [(0, 1)], 0.95)[0], abs=1e-6) == ends(found)
