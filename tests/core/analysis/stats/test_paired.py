"""Paired effects: tests and figures, held against SciPy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from keval.analysis.stats.intervals import FloatArray
from keval.analysis.stats.paired import PairedEffect, mcnemar_mid_p, paired, sign_flip_p


def effect(arm: FloatArray, against: FloatArray, high: float = math.inf) -> PairedEffect:
    return paired(arm, against, low=0, high=high, seed=1)


def test_the_t_interval_and_test_are_scipys() -> None:
    rng = np.random.default_rng(5)
    arm, against = rng.normal(0.4, 1, 40), rng.normal(0, 1, 40)

    found = effect(arm, against)

    theirs = stats.ttest_rel(arm, against)
    assert pytest.approx(tuple(theirs.confidence_interval()), rel=1e-9) == (found.t_low, found.t_high)
    assert found.p is not None
    assert found.p >= theirs.pvalue - 1e-12
    assert pytest.approx(np.mean(arm - against) / np.std(arm - against, ddof=1), rel=1e-9) == found.d


def test_symmetric_differences_have_the_p_value_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(6)
    against = rng.normal(size=40)
    noise = rng.normal(size=20)
    arm = against + 0.2 + np.concatenate([noise, -noise])

    found = effect(arm, against)

    assert "paired_t" == found.test
    assert pytest.approx(stats.ttest_rel(arm, against).pvalue, rel=1e-9) == found.p


@pytest.mark.parametrize(("better", "worse"), [(8, 1), (5, 5), (0, 0), (0, 6), (120, 90)])
def test_mcnemars_mid_p_is_the_exact_one_of_statsmodels_less_what_was_seen(better: int, worse: int) -> None:
    exact = mcnemar([[3, better], [worse, 4]], exact=True).pvalue if better + worse else 1.0

    seen = stats.binom.pmf(better, better + worse, 0.5)
    assert pytest.approx(1.0 if better == worse else exact - seen, rel=1e-9) == mcnemar_mid_p(better, worse)


def test_zeros_and_ones_are_tested_by_mcnemar_and_means_over_repetitions_are_not() -> None:
    arm, against = np.repeat([1.0, 1.0, 0.0], [9, 10, 2]), np.repeat([0.0, 1.0, 1.0], [9, 10, 2])

    once, repeated = effect(arm, against, high=1), effect((2 * arm + against) / 3, against, high=1)

    assert ("mcnemar_mid_p", mcnemar_mid_p(9, 2)) == (once.test, once.p)
    assert repeated.test in {"paired_t", "skew_t"}


def test_few_changes_are_tested_by_flipping_signs() -> None:
    differences = np.array([0.3, 0.1, 0.4, -0.1, 0.2, 0.25, *[0.0] * 20])

    found = effect(0.5 + differences, np.full(26, 0.5), high=1)

    theirs = stats.permutation_test((differences[:6],), np.sum, permutation_type="samples", n_resamples=math.inf)
    assert "sign_flip" == found.test
    assert pytest.approx(theirs.pvalue, rel=1e-9) == found.p


def test_many_differences_that_hardly_vary_are_tested_by_their_signs() -> None:
    differences = np.array([*[0.25] * 17, -0.25, 0.5])

    found = effect(0.5 + differences, np.full(19, 0.5), high=1)

    assert "sign" == found.test
    assert pytest.approx(stats.binomtest(1, 19).pvalue, rel=1e-9) == found.p


@pytest.mark.parametrize(("difference", "n", "p"), [(0.0, 8, 1.0), (0.3, 3, 0.25), (0.3, 8, 2**-7), (0.3, 20, 2**-19)])
def test_equal_differences_are_as_sure_as_their_number(difference: float, n: int, p: float) -> None:
    found = effect(np.full(n, 0.5 + difference), np.full(n, 0.5), high=1)

    assert pytest.approx((difference, 0.0, p)) == (found.difference, found.stderr, found.p)
    assert (None, None, None) == (found.d, found.bca_low, found.bca_high)


def test_samples_of_one_source_flip_together() -> None:
    differences, clusters = np.array([0.2, 0.2, 0.1, 0.1, *[0.0] * 40]), np.array([0, 0, 1, 1, *range(2, 42)])

    found = paired(0.5 + differences, np.full(44, 0.5), clusters=clusters, low=0, high=1, seed=1)

    assert ("sign_flip", sign_flip_p(np.array([0.4, 0.2]))) == (found.test, found.p)


def test_one_sample_or_none_has_no_error() -> None:
    assert PairedEffect(0, None) == effect(np.array([]), np.array([]))
    assert PairedEffect(1, 0.25) == effect(np.array([0.75]), np.array([0.5]))
