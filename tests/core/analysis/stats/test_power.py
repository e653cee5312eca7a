"""Power and samples needed, held against statsmodels."""

from __future__ import annotations

import math

import pytest
from statsmodels.stats.power import TTestPower

from keval.analysis.stats.power import minimal_detectable, power_of, samples_needed

THEIRS = TTestPower()


@pytest.mark.parametrize(("d", "n"), [(0.1, 15), (0.3, 30), (0.5, 100), (1.5, 4), (0.02, 20_000)])
def test_power_is_that_of_statsmodels(d: float, n: int) -> None:
    assert pytest.approx(THEIRS.power(d, n, 0.05), abs=1e-9) == power_of(2.0, -2 * d, n)


@pytest.mark.parametrize("n", [2, 5, 30, 1_000])
def test_the_smallest_difference_has_just_the_power(n: int) -> None:
    sd = 0.4

    found = minimal_detectable(sd / math.sqrt(n), n)

    assert found is not None
    assert pytest.approx(0.8, abs=1e-9) == THEIRS.power(found / sd, n, 0.05)


@pytest.mark.parametrize("d", [0.03, 0.2, 0.5, 1.2, 4.0])
def test_the_samples_needed_are_the_fewest_with_the_power(d: float) -> None:
    found = samples_needed(0.25, 0.25 * d, power=0.9)

    assert found is not None
    assert THEIRS.power(d, found, 0.05) >= 0.9
    assert found == 2 or THEIRS.power(d, found - 1, 0.05) < 0.9


def test_what_cannot_be_seen_is_unknown() -> None:
    assert [None, None, None] == [samples_needed(0.3, 0.0), samples_needed(1.0, 1e-9), power_of(0.3, 0.1, 1)]
    assert minimal_detectable(0.1, 1) is None


def test_differences_without_spread_need_two_samples() -> None:
    assert (2, 1.0) == (samples_needed(0.0, 0.1), power_of(0.0, 0.1, 2))
