"""What the statistics promise, on planted data with known truth; bench/verdicts.py has more of it.

Draws are seeded. Limits are those that are promised, 92 % and 6 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from scipy import stats

from keval_analysis.stats.intervals import Values, estimate, mean_intervals
from keval_analysis.stats.paired import Differences, Rule, holm
from keval_analysis.stats.power import minimal_detectable
from keval_analysis.stats.units import FloatArray, IntArray

Draw: TypeAlias = Callable[[np.random.Generator, int], FloatArray]

ORDINAL = np.array([0.02, 0.03, 0.05, 0.1, 0.8])


def repeated(rng: np.random.Generator, n: int) -> FloatArray:
    """Means of three 0/1 repetitions with an intra-class correlation of 0.5 and a mean of 0.9."""
    return np.asarray(rng.binomial(3, rng.beta(0.9, 0.1, n)) / 3, dtype=np.float64)


def ceiling(rng: np.random.Generator, n: int) -> FloatArray:
    """Nine in ten have the best score; the others lie anywhere."""
    return np.where(rng.random(n) < 0.9, 1.0, rng.random(n))


KINDS: dict[str, tuple[Draw, float, float]] = {
    "normal": (lambda rng, n: rng.normal(0.5, 0.15, n), 0.5, math.inf),
    "0/1": (lambda rng, n: np.where(rng.random(n) < 0.95, 1.0, 0.0), 0.95, 1),
    "ordinal": (lambda rng, n: rng.choice(np.linspace(0, 1, 5), n, p=ORDINAL), float(ORDINAL @ np.arange(5)) / 4, 1),
    "ceiling": (ceiling, 0.95, 1),
    "skewed": (lambda rng, n: rng.exponential(1, n), 1, math.inf),
    "repeated": (repeated, 0.9, 1),
}


def drawn(kind: str, n: int, times: int) -> tuple[list[FloatArray], float, float]:
    draw, truth, high = KINDS[kind]
    rng = np.random.default_rng([n, *kind.encode()])
    return [draw(rng, n) for _ in range(times)], truth, high


def covered(kind: str, n: int, times: int) -> tuple[float, float]:
    """Return the shares of intervals of a mean, and of its difference to a constant, that hold the truth."""
    rows, truth, high = drawn(kind, n, times)
    means = mean_intervals([Values(row, None, 0 if high == 1 else -high, high) for row in rows])
    low, up = Rule.on([Differences(row - 0.5, None, high) for row in rows]).interval(0.95)
    held = np.mean([found is not None and found.low <= truth <= found.high for found in means])
    return float(held), float(np.mean((low <= truth - 0.5 + 1e-9) & (truth - 0.5 <= up + 1e-9)))


@pytest.mark.parametrize("kind", ["0/1", "ceiling"])
def test_intervals_of_means_cover_where_those_of_t_do_not(kind: str) -> None:
    rows, truth, _ = drawn(kind, 15, 300)
    found = [estimate(row) for row in rows]

    by_t = np.mean([abs((one.mean or 0) - truth) <= 2.145 * (one.stderr or 0) for one in found])

    assert by_t < 0.8
    assert covered(kind, 15, 300)[0] >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_means_cover(kind: str, n: int) -> None:
    assert covered(kind, n, 2_000)[0] >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.1, 0.5])
def test_intervals_cover_in_clusters_of_unequal_size(correlation: float) -> None:
    rng = np.random.default_rng(4)
    clusters: IntArray = np.repeat(np.arange(20), [1] * 8 + [2] * 4 + [3] * 4 + [6] * 2 + [12] * 2)
    shared = math.sqrt(correlation) * rng.normal(size=(4_000, 20))[:, clusters]
    values = shared + math.sqrt(1 - correlation) * rng.normal(size=shared.shape)

    low, high = Rule.on([Differences(row, clusters) for row in values]).interval(0.95)

    assert np.mean((low <= 0) & (high >= 0)) >= 0.93


def p_values(draw: Draw, n: int, times: int, high: float) -> FloatArray:
    """Return the p-values of arms that differ by chance alone."""
    rng = np.random.default_rng(n)
    return Rule.on([Differences(draw(rng, n) - draw(rng, n), None, high) for _ in range(times)]).p()


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 30, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_effects_are_rarely_seen_where_there_are_none(kind: str, n: int) -> None:
    draw, _, high = KINDS[kind]

    assert np.mean(p_values(draw, n, 4_000, high) <= 0.05) <= 0.06


@pytest.mark.slow
def test_a_difference_of_zero_between_skewed_scores_and_a_constant_is_rarely_seen() -> None:
    rng = np.random.default_rng(3)

    found = Rule.on([Differences(rng.exponential(1, 15) - 1) for _ in range(4_000)]).p()

    assert np.mean(found <= 0.05) <= 0.06


def test_a_part_of_the_questions_that_loses_is_found() -> None:
    """30 % of 20 questions lose a quarter to three quarters: t finds that in four of five runs."""
    rng = np.random.default_rng(9)
    rows = [np.where(rng.random(20) < 0.3, -rng.uniform(0.25, 0.75, 20), 0.0) for _ in range(600)]

    found = Rule.on([Differences(row, None, 1.0) for row in rows]).p()

    by_t = np.mean([stats.ttest_1samp(row, 0).pvalue <= 0.05 for row in rows if row.any()])
    assert 0.75 <= by_t <= 0.87
    assert np.mean(found <= 0.05) >= by_t - 0.15


@pytest.mark.slow
def test_of_a_family_without_effects_rarely_any_is_seen_after_holm() -> None:
    # Two metrics of each of six kinds, in each of 600 runs.
    found = [p_values(draw, 30, 1_200, high) for draw, _, high in KINDS.values()]
    families = np.array(found).reshape(6, 600, 2).transpose(1, 0, 2).reshape(600, 12)

    false = [min(p for p in holm(family.tolist()) if p is not None) <= 0.05 for family in families]

    assert np.mean(false) <= 0.06


def test_a_run_sees_its_smallest_detectable_difference_four_times_in_five() -> None:
    rng, n, sd = np.random.default_rng(7), 30, 0.3
    smallest = minimal_detectable(sd / math.sqrt(n), n - 1)

    found = Rule.on([Differences(rng.normal(smallest, sd, n)) for _ in range(1_000)]).p()

    # The rule is a little more careful than t.
    assert pytest.approx(0.8, abs=0.05) == np.mean(found <= 0.05)
