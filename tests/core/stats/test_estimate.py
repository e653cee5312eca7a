"""Estimates: the sample is the unit."""

from __future__ import annotations

import math
import statistics

from hypothesis import given
from hypothesis import strategies as st

from keval.stats.estimates import Estimate, Means, estimate

scores = st.floats(0, 1, allow_nan=False)


def means(repetitions: list[list[float]]) -> Means:
    found = Means()
    for index, values in enumerate(repetitions):
        for value in values:
            found.add(index, value)
    return found


@given(st.lists(scores, min_size=2, max_size=30))
def test_the_standard_error_is_that_of_the_mean(values: list[float]) -> None:
    found = estimate(values)

    assert found.stderr is not None
    assert math.isclose(statistics.stdev(values) / math.sqrt(len(values)), found.stderr, abs_tol=1e-12)


@given(st.lists(st.lists(scores, min_size=1, max_size=4), min_size=2, max_size=10), st.integers(2, 5))
def test_duplicating_repetitions_never_narrows_the_error(repetitions: list[list[float]], times: int) -> None:
    once = estimate(means(repetitions).by_sample().values())
    often = estimate(means([values * times for values in repetitions]).by_sample().values())

    assert once.n == often.n
    assert math.isclose(once.stderr or 0, often.stderr or 0, abs_tol=1e-9)


def test_too_little_is_unknown_and_not_zero() -> None:
    assert Estimate(0, None, None) == estimate([])
    assert Estimate(1, 0.5, None) == estimate([0.5])
