"""Power and samples needed, held against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from keval_analysis.stats.power import minimal_detectable, needed_between, power_among, power_of, samples_needed

THEIRS = TTestPower()


@pytest.mark.parametrize(("d", "n"), [(0.1, 15), (0.3, 30), (0.5, 100), (1.5, 4), (0.02, 20_000)])
def test_power_is_that_of_statsmodels(d: float, n: int) -> None:
    assert pytest.approx(THEIRS.power(d, n, 0.05), abs=1e-9) == power_of(2.0, -2 * d, n)


@pytest.mark.parametrize("n", [2, 5, 30, 1_000])
def test_the_smallest_difference_has_just_the_power(n: int) -> None:
    sd = 0.4

    found = minimal_detectable(sd / math.sqrt(n), n - 1)
    stricter = minimal_detectable(sd / math.sqrt(n), n - 1, alpha=0.01)

    assert pytest.approx((0.8, 0.8), abs=1e-9) == (
        THEIRS.power(found / sd, n, 0.05),
        THEIRS.power(stricter / sd, n, 0.01),
    )


@pytest.mark.parametrize("d", [0.03, 0.2, 0.5, 1.2, 4.0])
def test_the_samples_needed_are_the_fewest_with_the_power(d: float) -> None:
    found = samples_needed(0.25, 0.25 * d, power=0.9)

    assert found is not None
    assert THEIRS.power(d, found, 0.05) >= 0.9
    assert found == 2 or THEIRS.power(d, found - 1, 0.05) < 0.9


def test_what_cannot_be_seen_is_unknown() -> None:
    assert [None, None, None] == [samples_needed(0.3, 0.0), samples_needed(1.0, 1e-9), power_of(0.3, 0.1, 1)]


def test_differences_without_spread_need_two_samples() -> None:
    assert (2, 1.0) == (samples_needed(0.0, 0.1), power_of(0.0, 0.1, 2))


@pytest.mark.parametrize("n", [15, 100])
def test_the_samples_needed_are_as_uncertain_as_the_spread(n: int) -> None:
    """In 95 of 100 runs, the number that the true spread needs lies between the two."""
    rng = np.random.default_rng(n)
    truth = samples_needed(1.0, 0.4)
    assert truth is not None

    found = [needed_between(float(sd), n - 1, 0.4) for sd in rng.normal(size=(400, n)).std(axis=1, ddof=1)]

    held = np.mean([ends is not None and ends[0] <= truth <= ends[1] for ends in found])
    assert pytest.approx(0.95, abs=0.03) == held
    assert needed_between(1.0, n - 1, 0.0) is None


def test_a_family_takes_power() -> None:
    of_one, of_many = power_among(1, 29), power_among(28, 29)

    d = THEIRS.solve_power(nobs=30, alpha=0.05, power=0.8)
    assert pytest.approx((0.8, THEIRS.power(d, 30, 0.05 / 28)), abs=1e-6) == (of_one, of_many)
