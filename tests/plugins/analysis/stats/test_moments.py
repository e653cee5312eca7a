"""Means and standard errors: the sample is the unit, or the cluster of samples that share a source."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from keval_analysis.stats.intervals import Estimate, Values, estimate, mean_intervals
from keval_analysis.stats.units import Units, moments


@pytest.mark.parametrize("n", [2, 15, 1000])
def test_without_clusters_the_standard_error_is_scipys(n: int) -> None:
    values = np.random.default_rng(n).random(n)

    found = estimate(values)

    assert [n, pytest.approx(n - 1)] == [found.n, found.df]
    assert pytest.approx((np.mean(values), stats.sem(values)), rel=1e-9) == (found.mean, found.stderr)


def test_clusters_of_one_size_have_the_standard_error_of_statsmodels_and_of_their_means() -> None:
    values = np.random.default_rng(1).normal(size=60)
    clusters = np.repeat(np.arange(12), 5)

    found = estimate(values, clusters)

    fit = sm.OLS(values, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    of_means = stats.sem(values.reshape(12, 5).mean(axis=1))
    assert pytest.approx((fit.bse[0], 11), rel=1e-9) == (found.stderr, found.df)
    assert pytest.approx(of_means, rel=1e-9) == found.stderr


def test_clusters_of_unequal_size_have_the_standard_error_and_freedom_of_bell_and_mccaffrey() -> None:
    sizes = [1, 1, 2, 3, 5, 8]
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(2).normal(size=len(clusters))

    found = estimate(values, clusters)

    # By the definition, with matrices: residuals of each cluster times (I - H)^(-1/2), and Satterthwaite's moments.
    n = len(values)
    annihilator = np.eye(n) - 1 / n
    variance, columns = 0.0, []
    for cluster in range(len(sizes)):
        own = np.flatnonzero(clusters == cluster)
        eigenvalues, vectors = np.linalg.eigh(annihilator[np.ix_(own, own)])
        adjusted = (vectors * eigenvalues**-0.5) @ vectors.T @ np.ones(len(own)) / n
        variance += float(adjusted @ (values - values.mean())[own]) ** 2
        columns.append(annihilator[:, own] @ adjusted)
    gram = np.array(columns) @ np.array(columns).T
    freedom = np.trace(gram) ** 2 / np.sum(gram**2)
    assert pytest.approx((math.sqrt(variance), freedom), rel=1e-9) == (found.stderr, found.df)


def test_too_little_is_unknown_and_not_zero() -> None:
    assert Estimate(0, None, None, None) == estimate(np.array([]))
    assert Estimate(1, 0.5, None, None) == estimate(np.array([0.5]))
    assert Estimate(3, 0.5, None, None) == estimate(np.array([0.2, 0.5, 0.8]), np.zeros(3, dtype=np.int64))


def test_values_that_differ_by_rounding_alone_have_no_spread() -> None:
    found = estimate(np.array([0.9 - 0.7, 1.0 - 0.8, 0.5 - 0.3]))

    assert 0 == found.stderr


@pytest.mark.parametrize("unit", [1e-150, 1e-120, 1e99])
def test_the_unit_of_a_score_does_not_change_skewness(unit: float) -> None:
    values = np.array([0.0, 0.1, 0.15, 0.3, 0.4, 2.0])

    plain, scaled = moments(Units.of([(values, None)])), moments(Units.of([(values * unit, None)]))

    assert pytest.approx([plain.stderr[0], plain.skewness[0]]) == [scaled.stderr[0] / unit, scaled.skewness[0]]


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e99])
def test_no_unit_of_a_score_is_too_small_or_large_for_one_mean(unit: float) -> None:
    values = np.array([0.0, 0.1, 0.15, 0.3, 0.4, 2.0])

    plain, scaled = estimate(values), estimate(values * unit)

    assert plain.stderr is not None
    assert scaled.stderr is not None
    assert pytest.approx([plain.stderr, plain.df, plain.skewness]) == [scaled.stderr / unit, scaled.df, scaled.skewness]


def test_many_means_at_once_have_the_moments_of_each() -> None:
    rng = np.random.default_rng(3)
    rows = [(rng.random(5), None), (rng.random(30), np.arange(30) // 4), (np.ones(3), None), (rng.random(1), None)]

    together = moments(Units.of(rows))

    for number, row in enumerate(rows):
        alone = moments(Units.of([row]))
        for name in ("mean", "stderr", "df", "skewness"):
            assert pytest.approx(getattr(alone, name)[0], nan_ok=True) == getattr(together, name)[number]


@pytest.mark.parametrize("seed", range(8))
def test_a_mean_by_itself_has_the_moments_and_the_interval_of_many_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 60))
    values, clusters = rng.exponential(size=n) ** 2 - 3, rng.integers(0, n // 2 + 1, n)
    rows = [(values, None), (values, clusters), (np.repeat(values[:3], 2), None), (np.full(n, 0.7), clusters)]

    found = moments(Units.of(rows))

    low, high = found.skew_t(0.95)
    columns = zip(found.mean, found.stderr, found.df, found.skewness, low, high, strict=True)
    for (row, of), many in zip(rows, columns, strict=True):
        one = estimate(row, of)
        (ends,) = mean_intervals([Values(row, of, -math.inf, math.inf)])
        assert pytest.approx(many[:4], rel=1e-9) == (one.mean, one.stderr, one.df, one.skewness)
        assert pytest.approx(many[4:], rel=1e-9) == ((ends.low, ends.high) if ends else (one.mean, one.mean))
