"""The distribution of a randomly weighted mean, held against the beta distribution and against drawing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from keval_analysis.stats import weighted_means
from keval_analysis.stats.units import FloatArray, Units
from keval_analysis.stats.weighted_means import WeightedMeans

PLACES = np.linspace(0.001, 0.999, 201)


def of(values: FloatArray, unseen: tuple[float, float], rows: int = 1) -> WeightedMeans:
    return WeightedMeans(Units.of([(values, None)] * rows), np.tile(unseen, (rows, 1)))


@pytest.mark.parametrize(("ones", "zeros"), [(1, 1), (1, 4), (4, 1), (10, 20), (1, 99), (99, 1), (300, 1), (1, 900)])
def test_of_zeros_and_ones_it_is_beta(ones: int, zeros: int) -> None:
    values = np.repeat([1.0, 0.0], [ones, zeros])

    at_zero = of(values, (0.0, 0.0), len(PLACES)).probability_below(PLACES)
    at_both = of(values, (0.0, 1.0), len(PLACES)).probability_below(PLACES)

    lower, higher = stats.beta(ones, zeros + 1).cdf(PLACES), stats.beta(ones + 1, zeros).cdf(PLACES)
    assert np.max(np.abs(at_zero - lower)) < 1e-6
    assert np.max(np.abs(at_both - (lower + higher) / 2)) < 1e-6
    for share in (1e-6, 0.025, 0.5, 0.975):
        found = of(values, (0.0, 0.0)).quantiles(share)
        assert pytest.approx(stats.beta(ones, zeros + 1).ppf(share), abs=1e-6) == found[0]


def test_of_irregular_clusters_it_is_what_drawing_finds() -> None:
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(7), [1, 1, 2, 3, 5, 8, 13])
    values = rng.exponential(size=len(clusters)) ** 2 - 1
    units = Units.of([(values, clusters)])

    weights = rng.standard_exponential((400_000, 8))
    sizes = np.append(units.sizes[0], units.sizes[0].mean())
    sums = np.append(units.sums[0], 0.0) + np.outer(rng.choice([-2.0, 3.0], 400_000), np.eye(8)[7] * sizes[7])
    drawn = (weights * sums).sum(axis=1) / (weights @ sizes)

    found = WeightedMeans(units, np.array([[-2.0, 3.0]]))
    for share in (0.025, 0.2, 0.5, 0.9, 0.975):
        place = found.quantiles(share)
        assert pytest.approx(share, abs=1e-6) == found.probability_below(place)[0]
        assert pytest.approx(share, abs=0.003) == np.mean(drawn <= place[0])


def test_rows_of_unlike_length_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(6)
    rows = [rng.normal(size=size) for size in (2, 30, 9)]
    unseen = np.array([[-1.0, 1.0], [-3.0, 0.5], [0.0, 2.0]])

    together = WeightedMeans(Units.of((row, None) for row in rows), unseen).quantiles(0.025)

    alone = [
        WeightedMeans(Units.of([(row, None)]), ends[None]).quantiles(0.025)[0]
        for row, ends in zip(rows, unseen, strict=True)
    ]
    assert pytest.approx(alone, abs=1e-7) == together


def test_equal_values_have_their_end_at_the_value() -> None:
    """Half of the probability lies where all values do."""
    found = of(np.full(9, 0.4), (-0.4, 0.4))

    assert pytest.approx(0.4 * (1 - 2 * (1 - 0.05 ** (1 / 9))), abs=1e-6) == found.quantiles(0.025)[0]
    assert pytest.approx(0.4, abs=1e-6) == found.quantiles(0.975)[0]


@pytest.mark.parametrize("size", [1_001, 5_000])
def test_many_units_are_merged_without_a_trace(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    values = np.random.default_rng(7).standard_t(2.5, size)
    merged = [of(values, (-1.0, 1.0)).quantiles(share)[0] for share in (0.025, 0.975)]
    monkeypatch.setattr(weighted_means, "_MOST_UNITS", 10**6)

    exact = [of(values, (-1.0, 1.0)).quantiles(share)[0] for share in (0.025, 0.975)]

    assert pytest.approx(exact, abs=1e-5 * float(stats.sem(values))) == merged
