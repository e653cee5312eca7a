"""Intervals of means and of differences; bench/interval_coverage.py measures how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from keval.analysis.stats.intervals import Interval, difference_interval, hall, mean_interval, moments, t_quantile
from keval.analysis.stats.paired import paired

FEW_CHANGED = [*[0.0] * 25, 0.2, 0.2, -0.1, 1.0]


def ends(found: Interval | None) -> tuple[float, float]:
    assert found is not None
    return found.low, found.high


@pytest.mark.parametrize(("passed", "n"), [(15, 15), (14, 15), (0, 8), (93, 100), (2, 30)])
def test_rare_zeros_or_ones_have_the_interval_of_clopper_and_pearson(passed: int, n: int) -> None:
    found = mean_interval(np.repeat([1.0, 0.0], [passed, n - passed]), low=0, high=1)

    exact = stats.binomtest(passed, n).proportion_ci(method="exact")
    assert found is not None
    assert "bounded" == found.method
    assert pytest.approx((exact.low, exact.high), rel=1e-9) == ends(found)


def test_values_that_scatter_symmetrically_have_the_t_interval() -> None:
    values = np.array([*np.linspace(-1, 1, 21), *np.linspace(-1, 1, 21)])

    found = difference_interval(values, span=math.inf)

    t = stats.t.interval(0.95, 41, values.mean(), stats.sem(values))
    assert found is not None
    assert "skew_t" == found.method
    assert pytest.approx(t, rel=1e-9) == ends(found)


@pytest.mark.parametrize("n", [3, 8, 40])
def test_no_interval_is_narrower_than_that_of_t(n: int) -> None:
    for values in np.random.default_rng(n).exponential(size=(50, n)) ** 2:
        low, high = ends(mean_interval(values, low=-math.inf, high=math.inf))

        t = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
        assert (True, True) == (low <= t[0] + 1e-9, high >= t[1] - 1e-9)
        assert (low, high) != pytest.approx(t)


def test_the_interval_of_skewed_values_ends_where_halls_transformation_says() -> None:
    values = np.random.default_rng(1).exponential(size=20)
    found = moments(values)
    assert found is not None

    low, high = ends(mean_interval(values, low=-math.inf, high=math.inf))

    reach = t_quantile(19, 0.95)
    assert pytest.approx(-reach) == hall((found.mean - high) / found.stderr, found.skewness)
    assert pytest.approx(found.mean - reach * found.stderr) == low
    assert pytest.approx((-high, -low)) == ends(difference_interval(-values, span=math.inf))


@pytest.mark.parametrize(("values", "low", "high"), [(FEW_CHANGED, -1, 1), ([1.0] * 13 + [0.5, 0.2], 0, 1)])
def test_the_bounded_interval_is_that_of_random_weights(values: list[float], low: float, high: float) -> None:
    found = mean_interval(np.array(values), low=low, high=high)

    weights = np.random.default_rng(2).dirichlet(np.ones(len(values) + 1), 200_000)
    lower = np.quantile(weights @ [*values, low], 0.025)
    upper = np.quantile(weights @ [*values, high], 0.975)
    assert pytest.approx((lower, upper), abs=0.003) == ends(found)


@pytest.mark.parametrize(("seed", "factor", "shift"), [(1, 4.0, 1.0), (2, 0.5, -3.0), (3, 100.0, 0.0)])
def test_intervals_move_with_the_scale_and_turn_with_it(seed: int, factor: float, shift: float) -> None:
    values = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], size=20, p=[0.05, 0.1, 0.85])

    low, high = ends(mean_interval(values, low=0, high=1))

    moved = mean_interval(values * factor + shift, low=shift, high=factor + shift)
    turned = mean_interval(1 - values, low=0, high=1)
    assert pytest.approx((low * factor + shift, high * factor + shift), abs=1e-6) == ends(moved)
    assert pytest.approx((1 - high, 1 - low), abs=1e-6) == ends(turned)


def test_clusters_of_single_samples_change_nothing() -> None:
    few, many = np.array(FEW_CHANGED), np.random.default_rng(3).normal(size=30)

    for values in (few, many):
        alone = difference_interval(values, span=5)
        clustered = difference_interval(values, clusters=np.arange(len(values)), span=5)
        assert pytest.approx(ends(alone), abs=1e-6) == ends(clustered)


def test_samples_of_one_source_say_no_more_than_one() -> None:
    values, clusters = np.array(FEW_CHANGED), np.arange(len(FEW_CHANGED))

    once = difference_interval(values, clusters=clusters, span=1)
    often = difference_interval(np.repeat(values, 4), clusters=np.repeat(clusters, 4), span=1)

    assert pytest.approx(ends(once), abs=1e-6) == ends(often)


def test_equal_values_are_bounded_by_the_scale_and_unknown_on_one_without_an_end() -> None:
    tail = 0.025 ** (1 / 15)

    assert pytest.approx((tail, 1.0)) == ends(mean_interval(np.ones(15), low=0, high=1))
    assert pytest.approx((tail - 1, 1 - tail)) == ends(difference_interval(np.zeros(15), span=1))
    assert mean_interval(np.ones(15), low=0, high=math.inf) is None
    assert mean_interval(np.ones(1), low=0, high=1) is None


def test_clusters_of_one_mean_have_the_careful_interval_though_their_samples_differ() -> None:
    differences, clusters = np.tile([0.1, 0.3], 6), np.repeat(np.arange(6), 2)

    found = difference_interval(differences, clusters=clusters, span=1.0)
    tested = paired(differences, np.zeros(12), clusters=clusters, low=0.0, high=1.0, seed=1)

    assert found is not None
    assert ("bounded", True) == (found.method, found.low < 0 < found.high)
    assert ("sign_flip", 2 / 2**6) == (tested.test, tested.p)
