"""Effects corrected by people's labels: by hand, in simulations with planted judges, and where labels are too few."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from scipy import stats

from keval_analysis.stats.corrected import Judged, Labelled, bias_difference, corrected, refusal
from keval_analysis.stats.units import FloatArray, IntArray


def labelled(people: list[float], judge: list[float], units: list[int] | None = None) -> Labelled:
    numbers = np.arange(len(people)) if units is None else np.array(units)
    return Labelled(np.array(people, np.float64), np.array(judge, np.float64), numbers)


def test_pairs_are_corrected_as_by_hand() -> None:
    """Four questions, all labelled in both arms: people differ by 1, 0, 2, 1, and the judge by 2, 1, 2, 1."""
    judged = Judged(np.array([2.0, 1.0, 2.0, 1.0, 3.0, 3.0]), np.arange(6), 4.0)
    arm, against = labelled([4, 3, 5, 2], [5, 4, 5, 2]), labelled([3, 3, 3, 1], [3, 3, 3, 1])

    found = corrected(judged, arm, against)

    # λ = Σ (j - 1.5) h / Σ (j - 1.5)² = (0.5 + 0 + 1 - 0.5) / 1 = 1, so r = -1, -1, 0, 0 and θ = 2 - 0.5.
    assert (1.0, 4, 2.0) == (found.tuning, found.pairs, found.df)
    assert pytest.approx(1.5) == found.difference
    # J - 2 over 6, and r + 0.5 over 4: 0 - 1/8, -1/6 - 1/8, 0 + 1/8, -1/6 + 1/8, 1/6, 1/6.
    adds = [-1 / 8, -7 / 24, 1 / 8, -1 / 24, 1 / 6, 1 / 6]
    assert pytest.approx(math.sqrt(sum(each**2 for each in adds) * 8 / 5)) == found.stderr
    assert pytest.approx(1.5 + stats.t.ppf(0.975, 2) * found.stderr) == found.ci_high
    bias = bias_difference(arm, against, 4.0)
    assert pytest.approx((0.5, math.sqrt(4 * (1 / 8) ** 2 * 8 / 5))) == (bias.difference, bias.stderr)


def test_labels_of_other_questions_in_either_arm_are_estimated_apart() -> None:
    judged = Judged(np.array([1.0, 0.0, 2.0, 1.0]), np.arange(4), 4.0)
    arm, against = labelled([1, 2, 3], [2, 4, 6], [0, 1, 2]), labelled([2, 2, 5], [1, 3, 2], [1, 2, 3])

    found = corrected(judged, arm, against)

    # λ = (4 + 0) / (8 + 2); r = 0.2, 0.4, 0.6 and 1.6, 0.8, 4.2.
    assert (None, 3.0) == (found.pairs, found.df)
    assert pytest.approx((0.4, 0.4 * 1 + 0.4 - 2.2)) == (found.tuning, found.difference)
    adds = [-0.2 / 3, -0.1 + 0.6 / 3, 0.1 + 0.2 / 3 + 1.4 / 3, -2.0 / 3]
    assert pytest.approx(math.sqrt(sum(each**2 for each in adds) * 6 / 3)) == found.stderr


def test_answers_of_one_source_are_one_unit() -> None:
    judged = Judged(np.tile([1.0, 0.0, 2.0, 1.0], 2), np.tile(np.arange(4), 2), 4.0)
    once = labelled([1, 2, 3, 3], [2, 1, 3, 3]), labelled([2, 2, 1, 3], [1, 2, 2, 3])
    arm, against = (Labelled(*(np.tile(each, 2) for each in attrs.astuple(side))) for side in once)

    assert corrected(Judged(judged.differences[:4], np.arange(4), 4.0), *once) == corrected(judged, arm, against)


def test_a_judge_that_always_answers_alike_leaves_what_people_say() -> None:
    arm, against = labelled([5, 4, 5], [3, 3, 3]), labelled([1, 2, 1], [3, 3, 3])

    found = corrected(Judged(np.zeros(9), np.arange(9), 4.0), arm, against)

    assert 0.0 == found.tuning
    assert pytest.approx(10 / 3) == found.difference


@pytest.mark.parametrize(
    ("people", "told"),
    [
        ([1, 2, 3] * 3, "9 and 9 questions are labelled, and each arm needs 10"),
        ([4] * 40, "people gave one level throughout"),
        ([0, 1, 1, 1, 1, 1, 1] * 4, "28 and 28 questions are labelled, and each arm needs 30 where nearly all answers"),
        ([3, *[5] * 39], "people gave nearly all answers the same level"),
        ([1, 2, 3, 4, 5] * 2, None),
        ([0, 1, 1, 1, 1, 1] * 5, None),
        ([3, 4, *[5] * 10], "12 and 12 questions are labelled, and each arm needs 80 where most answers are on one"),
        ([3, 4, *[5] * 4] * 14, None),
        ([3, 4, 4, *[5] * 4], "7 and 7 questions are labelled"),
        ([3, 4, 4, *[5] * 4] * 2, None),
    ],
)
def test_too_few_or_too_equal_labels_are_refused_with_the_reason(people: list[float], told: str | None) -> None:
    arm = labelled(people, people)

    found = refusal(arm, arm, 1.0 if 0 in people else 4.0)

    assert told == found if told is None else told in (found or "")


def drawn(rng: np.random.Generator, kinder: tuple[float, float], apart: bool) -> tuple[Judged, Labelled, Labelled]:
    """35 questions without a true effect, and labels of 15 answers of each arm; the judge is kinder to either arm."""
    people = np.clip(np.round(3 + rng.normal(size=35) + rng.normal(size=(2, 35))), 1, 5)
    judge = np.clip(people + np.floor(np.array(kinder)[:, None] + rng.uniform(size=people.shape)), 1, 5)
    chosen: list[IntArray] = [rng.permutation(35)[:15]] * 2
    if apart:
        chosen[1] = rng.permutation(35)[:15]
    levels: list[FloatArray] = [*people, *judge]
    sides = [Labelled(levels[row][of], levels[2 + row][of], of) for row, of in enumerate(chosen)]
    return Judged(judge[0] - judge[1], np.arange(35), 4.0), sides[0], sides[1]


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kinder", [(0.0, 0.0), (0.7, 0.7), (-0.43, 0.6)])
def test_the_interval_holds_the_truth_whatever_the_judge_favours(kinder: tuple[float, float], apart: bool) -> None:
    rng = np.random.default_rng(31)

    found = [corrected(*drawn(rng, kinder, apart)) for _ in range(200)]

    # Where the judge is right on every label, the interval allows for the errors that no label shows.
    most = 0.995 if any(kinder) else 1.0
    assert 0.93 <= np.mean([each.ci_low <= 0 <= each.ci_high for each in found]) <= most
    assert abs(np.mean([each.difference for each in found])) < 0.05


@pytest.mark.slow
def test_the_interval_allows_for_large_errors_that_no_label_shows() -> None:
    """A judge gives one in twenty answers of an arm the best level, whatever they are worth."""
    rng, found = np.random.default_rng(31), []
    for _ in range(100):
        people = np.clip(rng.integers(1, 6, 1000) + rng.integers(-1, 2, (2, 1000)), 1, 5).astype(np.float64)
        judge = people.copy()
        judge[0, rng.random(1000) < 0.05] = 5.0
        chosen = rng.permutation(1000)[:15]
        arm, against = (Labelled(people[row][chosen], judge[row][chosen], chosen) for row in range(2))
        effect = corrected(Judged(judge[0] - judge[1], np.arange(1000), 4.0), arm, against)
        found.append((effect.ci_low <= 0 <= effect.ci_high, bias_difference(arm, against, 4.0)))

    assert 0.85 <= np.mean([holds for holds, _ in found])
    assert all(bias.ci_low < bias.ci_high for _, bias in found)
