"""Means and standard errors: the sample is the unit, or the cluster of samples that share a source."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from keval_analysis.stats.intervals import Values
from keval_analysis.stats.units import FloatArray, IntArray, Units, moments


def values(drawn: FloatArray, clusters: IntArray | None = None) -> Values:
    return Values(drawn, clusters, -math.inf, math.inf)


@pytest.mark.parametrize("n", [2, 15, 1000])
def test_without_clusters_the_standard_error_is_scipys(n: int) -> None:
    drawn = np.random.default_rng(n).random(n)

    found = values(drawn)

    assert pytest.approx(n - 1) == found.moments.df[0]
    assert pytest.approx((np.mean(drawn), stats.sem(drawn)), rel=1e-9) == (found.mean, found.stderr)


def test_clusters_of_one_size_have_the_standard_error_of_statsmodels_and_of_their_means() -> None:
    drawn = np.random.default_rng(1).normal(size=60)
    clusters = np.repeat(np.arange(12), 5)

    found = values(drawn, clusters)

    fit = sm.OLS(drawn, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    of_means = stats.sem(drawn.reshape(12, 5).mean(axis=1))
    assert pytest.approx((fit.bse[0], 11), rel=1e-9) == (found.stderr, found.moments.df[0])
    assert pytest.approx(of_means, rel=1e-9) == found.stderr


def test_clusters_of_unequal_size_have_the_standard_error_and_freedom_of_bell_and_mccaffrey() -> None:
    sizes = [1, 1, 2, 3, 5, 8]
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    drawn = np.random.default_rng(2).normal(size=len(clusters))

    found = values(drawn, clusters)

    # By the definition, with matrices: residuals of each cluster times (I - H)^(-1/2), and Satterthwaite's moments.
    n = len(drawn)
    annihilator = np.eye(n) - 1 / n
    variance, columns = 0.0, []
    for cluster in range(len(sizes)):
        own = np.flatnonzero(clusters == cluster)
        eigenvalues, vectors = np.linalg.eigh(annihilator[np.ix_(own, own)])
        adjusted = (vectors * eigenvalues**-0.5) @ vectors.T @ np.ones(len(own)) / n
        variance += float(adjusted @ (drawn - drawn.mean())[own]) ** 2
        columns.append(annihilator[:, own] @ adjusted)
    gram = np.array(columns) @ np.array(columns).T
    freedom = np.trace(gram) ** 2 / np.sum(gram**2)
    assert pytest.approx((math.sqrt(variance), freedom), rel=1e-9) == (found.stderr, found.moments.df[0])


def test_too_little_is_unknown_and_not_zero() -> None:
    found = [
        values(np.array([])),
        values(np.array([0.5])),
        values(np.array([0.2, 0.5, 0.8]), np.zeros(3, dtype=np.int64)),
    ]

    assert [(None, None), (0.5, None), (0.5, None)] == [(each.mean, each.stderr) for each in found]


def test_values_that_differ_by_rounding_alone_have_no_spread() -> None:
    found = values(np.array([0.9 - 0.7, 1.0 - 0.8, 0.5 - 0.3]))

    assert 0 == found.stderr


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e99])
def test_no_unit_of_a_score_is_too_small_or_large(unit: float) -> None:
    drawn = np.array([0.0, 0.1, 0.15, 0.3, 0.4, 2.0])

    plain, scaled = moments(Units.of([(drawn, None)])), moments(Units.of([(drawn * unit, None)]))

    assert pytest.approx([plain.stderr[0], plain.df[0], plain.skewness[0]]) == [
        scaled.stderr[0] / unit,
        scaled.df[0],
        scaled.skewness[0],
    ]


def test_many_means_at_once_have_the_moments_of_each() -> None:
    rng = np.random.default_rng(3)
    rows = [(rng.random(5), None), (rng.random(30), np.arange(30) // 4), (np.ones(3), None), (rng.random(1), None)]

    together = moments(Units.of(rows))

    for number, row in enumerate(rows):
        alone = moments(Units.of([row]))
        for name in ("mean", "stderr", "df", "skewness"):
            assert pytest.approx(getattr(alone, name)[0], nan_ok=True) == getattr(together, name)[number]
