"""Agreement beyond chance, held against the packages krippendorff and scikit-learn."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from keval_analysis.stats.agreement import ordinal_alpha, weighted_kappa


@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_krippendorffs_package(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 8, 50)
    ratings = np.clip(truth + rng.integers(-2, 3, (2 + seed % 3, 50)), 1, 7).astype(float)
    ratings[rng.random(ratings.shape) < 0.25] = np.nan

    theirs = krippendorff.alpha(ratings, level_of_measurement="ordinal")
    assert pytest.approx(theirs, rel=1e-9) == ordinal_alpha(ratings)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(1, 6, 40)
    second = np.clip(first + rng.integers(-1, 3, 40), 1, 7)

    theirs = cohen_kappa_score(first, second, labels=range(1, 8), weights="quadratic")
    assert pytest.approx(theirs, rel=1e-9) == weighted_kappa(first.astype(float), second.astype(float))


def test_one_level_throughout_has_no_agreement_beyond_chance() -> None:
    assert ordinal_alpha(np.full((2, 5), 3.0)) is None
    assert weighted_kappa(np.full(5, 3.0), np.full(5, 3.0)) is None
    assert ordinal_alpha(np.array([[1.0, np.nan], [np.nan, 2.0]])) is None
