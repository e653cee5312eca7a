"""Corrected effects, held against the package of those who found prediction-powered inference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from keval_analysis.stats.corrected import Judged, Labelled, corrected
from keval_analysis.stats.units import FloatArray

pytest.importorskip("ppi_py", reason="ppi-python is installed apart, as Numba is large")

from ppi_py import ppi_mean_ci, ppi_mean_pointestimate


def levels(rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
    people = rng.integers(1, 6, (2, count)).astype(np.float64)
    return people, np.clip(people + rng.integers(-1, 3, people.shape), 1, 5)


@pytest.mark.parametrize("seed", range(5))
def test_the_estimate_is_the_difference_of_the_means_of_both_arms(seed: int) -> None:
    """With one λ: all answers stand for the unlabelled ones."""
    rng = np.random.default_rng(seed)
    people, judge = levels(rng, 40)
    chosen = [rng.permutation(40)[:15] for _ in range(2)]
    arm, against = (Labelled(people[row, of], judge[row, of], of) for row, of in enumerate(chosen))

    found = corrected(Judged(judge[0] - judge[1], np.arange(40), 4.0), arm, against)

    means = [
        float(ppi_mean_pointestimate(side.people, side.judge, judge[row], lam=found.tuning)[0])
        for row, side in enumerate((arm, against))
    ]
    assert 0 < found.tuning < 1
    assert pytest.approx(means[0] - means[1]) == found.difference


@pytest.mark.parametrize("seed", range(5))
def test_the_error_is_the_same_where_labelled_questions_are_none_of_the_others(seed: int) -> None:
    """Of paired differences, but for the factor N / (N - 3), and t in place of the normal distribution."""
    rng = np.random.default_rng(seed)
    people, judge = levels(rng, 15)
    other = levels(rng, 60)[1]
    arm, against = (Labelled(people[row], judge[row], np.arange(15)) for row in range(2))

    found = corrected(Judged(other[0] - other[1], np.arange(100, 160), 4.0), arm, against)

    ends = ppi_mean_ci(people[0] - people[1], judge[0] - judge[1], other[0] - other[1], 0.05, lam=found.tuning)
    low, high = (float(end[0]) for end in ends)
    assert pytest.approx((low + high) / 2) == found.difference
    assert pytest.approx((high - low) / 2 / stats.norm.ppf(0.975)) == found.stderr * np.sqrt(27 / 30)
