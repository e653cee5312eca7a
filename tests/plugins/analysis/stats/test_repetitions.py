"""Figures over repetitions, held against trying all subsets of them."""

from __future__ import annotations

from itertools import combinations
from statistics import mean, pvariance, variance

import pytest

from keval_analysis.stats.variance import flip_rate, pass_all_k, pass_at_k, pooled_sd

# Which repetitions of each sample passed.
PASSED = [[1, 1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1], [1], [0, 1, 0]]
N, C = [len(passed) for passed in PASSED], [sum(passed) for passed in PASSED]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_passes_are_those_of_all_subsets(k: int) -> None:
    subsets = [list(combinations(passed, k)) for passed in PASSED if len(passed) >= k]

    assert pytest.approx(mean(mean(any(one) for one in chosen) for chosen in subsets)) == pass_at_k(N, C, k)
    assert pytest.approx(mean(mean(all(one) for one in chosen) for chosen in subsets)) == pass_all_k(N, C, k)


def test_the_flip_rate_is_that_of_all_pairs() -> None:
    pairs = [list(combinations(passed, 2)) for passed in PASSED if len(passed) > 1]

    assert pytest.approx(mean(mean(one != other for one, other in chosen) for chosen in pairs)) == flip_rate(N, C)


def test_the_spread_pools_the_variances_within_samples() -> None:
    scores = [[0.2, 0.4, 0.9], [0.5], [1.0, 0.0]]
    n = [len(values) for values in scores]
    squares = [len(values) * pvariance(values) for values in scores]

    assert pytest.approx(((2 * variance(scores[0]) + variance(scores[2])) / 3) ** 0.5) == pooled_sd(n, squares)


def test_without_enough_repetitions_all_is_unknown() -> None:
    one = [1] * 4

    assert [None] * 4 == [
        pass_at_k(one, one, 2),
        pass_all_k(one, one, 2),
        flip_rate(one, one),
        pooled_sd(one, [0.0] * 4),
    ]
