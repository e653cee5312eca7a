"""The one rule of paired differences: interval and p agree, and are held against SciPy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from keval_analysis.stats.paired import Differences, PairedEffect, Rule, paired_effects
from keval_analysis.stats.units import FloatArray, IntArray
from keval_analysis.stats.weighted_means import WeightedMeans

FEW_CHANGED = np.array([*[0.0] * 25, 0.2, 0.2, -0.1, 1.0])


def effect(values: FloatArray, clusters: IntArray | None = None, span: float = math.inf) -> PairedEffect:
    return paired_effects([Differences(values, clusters, span)])[0]


def ends(found: PairedEffect) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def every_kind(rng: np.random.Generator) -> list[Differences]:
    """Differences of every kind: few, many, skewed, tied, all alike, in clusters; on scales with and without end."""
    found: list[Differences] = []
    for n in (2, 3, 5, 8, 12, 20, 30, 60):
        clusters = np.sort(rng.integers(0, max(2, n // 3), n))
        for values, span in (
            (rng.normal(rng.normal(0, 0.5), 1, n), math.inf),
            (rng.exponential(1, n) ** 2 * rng.choice([-1, 1]), math.inf),
            (rng.choice([-1.0, 0.0, 1.0], n, p=[0.1, 0.6, 0.3]), 1.0),
            (rng.choice([0.0, 1.0], n, p=[0.7, 0.3]), 1.0),
            (rng.choice([-1 / 3, 0.0, 2 / 3], n), 1.0),
            (np.full(n, rng.normal()), 10.0),
            (np.where(np.arange(n) == 0, -5.0, 0.3), 10.0),
        ):
            found += [Differences(values, None, span), Differences(values, clusters, span)]
    return found


@pytest.mark.slow
def test_interval_and_p_never_contradict_each_other() -> None:
    rng = np.random.default_rng(1)
    rows = [row for _ in range(20) for row in every_kind(rng)]
    rule = Rule.on(rows)

    for level in (0.9, 0.95, 0.998):
        low, high = rule.interval(level)
        for center in (0.0, 0.1, -0.3):
            p = rule.p(center)
            sure = (
                (np.abs(p - (1 - level)) > 1e-6)
                & ~np.isnan(low)
                & (np.minimum(abs(low - center), abs(high - center)) > 1e-6)
            )
            assert np.array_equal((p < 1 - level)[sure], ((low > center) | (high < center))[sure])
        known = ~np.isnan(low)
        assert np.all((low <= rule.moments.mean + 1e-9)[known])
        assert np.all((rule.moments.mean - 1e-9 <= high)[known])


@pytest.mark.parametrize(("better", "worse"), [(8, 1), (5, 5), (0, 6), (1, 0), (120, 90)])
@pytest.mark.parametrize("same", [1, 40])
def test_the_weighted_part_is_mcnemars_mid_p_on_single_trials(better: int, worse: int, same: int) -> None:
    values = np.repeat([1.0, -1.0, 0.0], [better, worse, same])
    rule = Rule.on([Differences(values, None, 1.0)])

    below = float(WeightedMeans(rule.units, np.array([[-1.0, 1.0]])).probability_below(np.zeros(1))[0])

    exact = mcnemar([[3, better], [worse, 4]], exact=True).pvalue
    seen = stats.binom.pmf(better, better + worse, 0.5)
    expected = 1.0 if better == worse else exact - seen
    assert pytest.approx(expected, abs=1e-7) == 2 * min(below, 1 - below)
    assert rule.p()[0] >= expected - 1e-7


def test_symmetric_differences_have_the_interval_and_p_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(6)
    noise = rng.normal(size=40)
    values = 0.2 + np.concatenate([noise, -noise])

    found = effect(values)

    theirs = stats.ttest_1samp(values, 0)
    assert pytest.approx(theirs.pvalue, rel=1e-9) == found.p
    assert pytest.approx(tuple(theirs.confidence_interval()), rel=1e-9) == ends(found)
    assert pytest.approx(values.mean() / values.std(ddof=1), rel=1e-9) == found.d


@pytest.mark.parametrize(
    ("values", "span"),
    [
        (np.full(40, -0.2), 200.0),
        (np.full(20, -0.1), 1.0),
        (np.repeat([-1 / 3, 0.0], [8, 8]), 1.0),
        (np.repeat([-1 / 3, 0.0], [8, 12]), 1.0),
    ],
    ids=["wide scale", "all alike", "half", "half, and four unchanged"],
)
def test_questions_that_lose_alike_are_seen(values: FloatArray, span: float) -> None:
    found = effect(values, span=span)

    assert ends(found)[1] < 0
    assert found.p is not None
    assert found.p < 0.01


@pytest.mark.parametrize(("n", "p"), [(3, 2**-3), (8, 2**-8), (20, 2**-20)])
def test_equal_differences_are_as_sure_as_their_number(n: int, p: float) -> None:
    found = effect(np.full(n, 0.3), span=1)

    assert pytest.approx((0.3, 0.0, p, 0.3), rel=1e-6) == (found.difference, found.stderr, found.p, found.high)
    assert found.d is None


def test_no_change_on_any_question_is_bounded_by_the_scale_alone() -> None:
    reach = 1 - 0.05 ** (1 / 15)

    found, endless = effect(np.zeros(15), span=2), effect(np.zeros(15))

    assert pytest.approx((-2 * reach, 2 * reach), abs=1e-6) == ends(found)
    assert (1.0, 1.0, None, None) == (found.p, endless.p, endless.low, endless.worst_case)


@pytest.mark.parametrize("values", [FEW_CHANGED, np.array([0.1, 0.3, -0.2, 0.5, 0.4, 0.2])], ids=["few", "many"])
def test_the_worst_case_is_that_of_random_weights_and_the_scales_end(values: FloatArray) -> None:
    found = effect(values, span=1)

    weights = np.random.default_rng(2).dirichlet(np.ones(len(values) + 1), 200_000)
    lower, upper = np.quantile(weights @ [*values, -1.0], 0.025), np.quantile(weights @ [*values, 1.0], 0.975)
    assert found.worst_case is not None
    assert pytest.approx((min(lower, ends(found)[0]), max(upper, ends(found)[1])), abs=0.004) == found.worst_case


@pytest.mark.parametrize("factor", [0.01, 1e6])
def test_the_unit_and_the_direction_of_a_score_change_nothing(factor: float) -> None:
    for values in (FEW_CHANGED, np.random.default_rng(3).exponential(size=12) - 0.4):
        plain, scaled, turned = (
            effect(values, span=5),
            effect(values * factor, span=5 * factor),
            effect(-values, span=5),
        )

        assert pytest.approx([*ends(plain), plain.p], rel=1e-5) == [
            ends(scaled)[0] / factor,
            ends(scaled)[1] / factor,
            scaled.p,
        ]
        assert pytest.approx([*ends(plain), plain.p], abs=1e-6) == [-ends(turned)[1], -ends(turned)[0], turned.p]


def test_samples_of_one_source_say_no_more_than_one() -> None:
    for values in (FEW_CHANGED, np.random.default_rng(4).normal(size=30)):
        numbers = np.arange(len(values))
        alone = effect(values, span=5)
        single = effect(values, numbers, span=5)
        often = effect(np.repeat(values, 4), np.repeat(numbers, 4), span=5)

        for each in (single, often):
            assert pytest.approx([*ends(alone), alone.p], abs=1e-6) == [*ends(each), each.p]


def test_clusters_of_one_mean_are_as_sure_as_their_number_though_their_samples_differ() -> None:
    found = effect(np.tile([0.1, 0.3], 6), np.repeat(np.arange(6), 2), span=1)

    assert pytest.approx((0.0, 2**-6), abs=1e-7) == (found.stderr, found.p)


def test_too_few_have_neither_interval_nor_p() -> None:
    assert [PairedEffect(0, None), PairedEffect(1, 0.25)] == [effect(np.array([])), effect(np.array([0.25]))]
    source = effect(np.array([0.1, 0.2, 0.3]), np.zeros(3, np.int64), span=1)
    assert (3, None, None, None) == (source.n, source.low, source.p, source.worst_case)
    assert [] == paired_effects([])
