"""What the statistics promise, on planted data with known truth; bench/interval_coverage.py has more of it.

Draws are seeded. Limits are those that are promised, 93 % and 6 %, and leave no room for bad luck: what is drawn lies
above them by more than its own error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from keval.analysis.stats.intervals import FloatArray, IntArray, difference_interval, estimate, mean_interval
from keval.analysis.stats.paired import holm, p_value
from keval.analysis.stats.power import minimal_detectable, samples_needed

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


def covered(kind: str, n: int, times: int) -> float:
    """Return the share of intervals of a mean, and of its difference to a constant, that hold the truth."""
    draw, truth, high = KINDS[kind]
    rng = np.random.default_rng([n, *kind.encode()])
    held = 0
    for _ in range(times):
        values = draw(rng, n)
        mean = mean_interval(values, low=0 if high == 1 else -high, high=high)
        difference = difference_interval(values - 0.5, span=high)
        assert mean is not None
        assert difference is not None
        held += mean.low <= truth <= mean.high
        held += difference.low <= truth - 0.5 <= difference.high
    return held / (2 * times)


@pytest.mark.parametrize("kind", ["0/1", "ceiling"])
def test_intervals_cover_where_those_of_t_do_not(kind: str) -> None:
    draw, truth, _ = KINDS[kind]
    rng = np.random.default_rng(1)
    found = [estimate(draw(rng, 15)) for _ in range(300)]

    by_t = np.mean([abs((one.mean or 0) - truth) <= 2.145 * (one.stderr or 0) for one in found])

    assert by_t < 0.8
    assert covered(kind, 15, 200) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover(kind: str, n: int) -> None:
    assert covered(kind, n, 2_000) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.1, 0.5])
def test_intervals_cover_in_clusters_of_unequal_size(correlation: float) -> None:
    rng = np.random.default_rng(4)
    clusters: IntArray = np.repeat(np.arange(20), [1] * 8 + [2] * 4 + [3] * 4 + [6] * 2 + [12] * 2)
    held, scores = 0, math.sqrt(correlation)
    for _ in range(4_000):
        values = scores * rng.normal(size=20)[clusters]
        values = values + math.sqrt(1 - correlation) * rng.normal(size=len(clusters))
        found = mean_interval(values, clusters=clusters, low=-math.inf, high=math.inf)
        assert found is not None
        held += found.low <= 0 <= found.high

    assert held / 4_000 >= 0.93


def p_values(draw: Draw, n: int, times: int, high: float) -> list[float]:
    """Return the p-values of arms that differ by chance alone."""
    rng = np.random.default_rng(n)
    found = (p_value(draw(rng, n), draw(rng, n), low=0, high=high) for _ in range(times))
    return [one[0] for one in found if one is not None]


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_effects_are_rarely_seen_where_there_are_none(kind: str, n: int) -> None:
    draw, _, high = KINDS[kind]

    found = p_values(draw, n, 2_000, high)

    assert np.mean(np.array(found) <= 0.05) <= 0.06


@pytest.mark.slow
def test_a_difference_of_zero_between_skewed_scores_and_a_constant_is_rarely_seen() -> None:
    rng = np.random.default_rng(3)
    found = [p_value(rng.exponential(1, 15), np.ones(15), low=-math.inf, high=math.inf) for _ in range(4_000)]

    assert np.mean([one is not None and one[0] <= 0.05 for one in found]) <= 0.06


@pytest.mark.slow
def test_of_a_family_without_effects_rarely_any_is_seen_after_holm() -> None:
    # Ten metrics of each of 600 runs, of all kinds.
    drawn = [p_values(draw, 30, 1_200, high) for draw, _, high in KINDS.values()]
    families = np.array(drawn).reshape(6, 600, 2).transpose(1, 0, 2).reshape(600, 12)

    false = [min(p for p in holm(list(family)) if p is not None) <= 0.05 for family in families]

    assert np.mean(false) <= 0.06


@pytest.mark.slow
def test_the_samples_needed_show_the_difference_as_often_as_promised() -> None:
    rng, sd, difference = np.random.default_rng(6), 0.3, 0.12
    n = samples_needed(sd, difference)
    assert n is not None

    seen = 0
    for _ in range(3_000):
        against = rng.random(n)
        tested = p_value(against + rng.normal(difference, sd, n), against, low=-math.inf, high=math.inf)
        seen += tested is not None and tested[0] <= 0.05

    # The test is a little more careful than that of t, by which the samples are counted.
    assert n == 52
    assert pytest.approx(0.8, abs=0.025) == seen / 3_000


def test_a_run_sees_its_smallest_detectable_difference_four_times_in_five() -> None:
    rng, n, sd = np.random.default_rng(7), 30, 0.3
    smallest = minimal_detectable(sd / math.sqrt(n), n)
    assert smallest is not None

    found = [difference_interval(rng.normal(smallest, sd, n), span=math.inf) for _ in range(1_000)]

    # Intervals are a little wider than those of t: 78 % with 30 samples.
    assert pytest.approx(0.8, abs=0.04) == np.mean([one is not None and one.low > 0 for one in found])
