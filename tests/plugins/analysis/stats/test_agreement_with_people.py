"""Agreement of judges with people, held against the packages krippendorff and scikit-learn."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from keval.records.manifest import ScorerEntry
from keval.records.scores import Scale
from keval_analysis.stats.agreement import Graded, judge_with_people, kappa_interval, weighted_kappa
from keval_analysis.stats.units import FloatArray, IntArray

ENTRY = ScorerEntry("tone", "reader", Scale(1, 5), rubric="r")
LEVELS = range(1, 6)


def drawn(rng: np.random.Generator, questions: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Levels of a person and a judge for two answers to each question, some of which are harder than others."""
    of = np.repeat(np.arange(questions), 2)
    true = rng.normal(size=questions)[of] * 0.7 + rng.normal(size=len(of)) * 0.7
    person, judge = (
        1.0 + np.digitize(true + shift + 0.7 * rng.normal(size=len(of)), [-1.5, -0.7, 0.2, 0.9]) for shift in (0, 0.2)
    )
    return person.astype(np.float64), judge.astype(np.float64), of.astype(np.int64)


@pytest.mark.parametrize("seed", range(3))
def test_the_figures_are_those_of_other_packages_and_follow_from_the_confusion_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    person, judge, of = drawn(rng, 30)
    again = np.clip(judge + rng.integers(-1, 2, len(judge)), 1, 5)
    graded = [
        Graded(f"a{place}", f"q{of[place]}", "ann", int(person[place]), (judge[place], again[place]))
        for place in range(len(of))
    ]

    found = judge_with_people(ENTRY, graded, LEVELS)

    assert found is not None
    ours, theirs = np.repeat(person, 2), np.stack([judge, again], axis=1).ravel()
    assert (60, 30, 120) == (found.n, found.questions, found.pairs)
    assert confusion_matrix(ours, theirs, labels=LEVELS).tolist() == [list(row) for row in found.confusion]
    assert pytest.approx(cohen_kappa_score(ours, theirs, labels=LEVELS, weights="quadratic")) == found.kappa
    assert pytest.approx(krippendorff.alpha(np.stack([ours, theirs]), level_of_measurement="ordinal")) == found.alpha
    assert pytest.approx((np.mean(ours == theirs), np.mean(abs(ours - theirs) <= 1))) == (found.same, found.near)
    by_question = [np.mean((theirs - ours)[np.repeat(of, 2) == number]) for number in range(30)]
    assert pytest.approx(np.mean(by_question)) == found.bias
    assert found.bias_low is not None
    assert found.ci_low is not None
    assert found.bias_low < found.bias
    assert found.ci_low < (found.kappa or 0)


def test_every_person_has_an_agreement_of_their_own() -> None:
    levels = [1, 2, 3, 4, 5]
    graded = [Graded(f"{level}", f"{level}", "ann", level, (float(level),)) for level in levels]
    graded += [Graded(f"{level}", f"{level}", "ben", 6 - level, (float(level),)) for level in levels]

    found = judge_with_people(ENTRY, graded, LEVELS)

    assert found is not None
    assert [(("reader", "ann"), 5, 1.0), (("reader", "ben"), 5, -1.0)] == [
        (p.raters, p.n, p.kappa) for p in found.people
    ]
    assert (5, 10, 0.0, 0.6) == (found.n, found.pairs, found.kappa, found.same)


def test_without_disagreement_or_with_few_questions_there_is_no_interval() -> None:
    same = np.array([1.0, 5.0] * 10)
    few = drawn(np.random.default_rng(1), 9)

    assert kappa_interval(same, same, np.arange(20)) is None
    assert kappa_interval(*few) is None
    assert judge_with_people(ENTRY, [], LEVELS) is None
    alone, level = (judge_with_people(ENTRY, [Graded("a", "a", "ann", 3, of)], LEVELS) for of in ((4.0,), (3.0, 3.0)))
    assert alone is not None
    assert level is not None
    assert "one level throughout" == level.reason
    assert (None, "one answer", None) == (alone.kappa, alone.reason, alone.ci_low)


def test_an_interval_of_kappa_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(15)
    truth = weighted_kappa(*drawn(rng, 200_000)[:2])
    assert truth is not None

    ends = [kappa_interval(*drawn(rng, 20)) for _ in range(400)]

    held = np.mean([found is not None and found[0] <= truth <= found[1] for found in ends])
    assert 0.93 <= held <= 0.98
