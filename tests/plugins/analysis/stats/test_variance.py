"""Variance components, held against the analysis of variance of balanced data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from keval_analysis.stats.units import FloatArray
from keval_analysis.stats.variance import Components, Graded, advice, variance_components


def graded(scores: FloatArray, kept: NDArray[np.bool_]) -> Graded:
    """What one arm is given: an array of questions by repetitions by gradings, and which of them there are."""
    m, mask = kept.sum(axis=2), kept.astype(float)
    asked = m.sum(axis=1) > 0
    trial = (scores * mask).sum(axis=2) / np.maximum(m, 1)
    question = (trial * m).sum(axis=1) / np.maximum(m.sum(axis=1), 1)
    return Graded(
        trials=(m > 0).sum(axis=1)[asked].tolist(),
        gradings=m.sum(axis=1)[asked].tolist(),
        gradings_squared=(m**2).sum(axis=1)[asked].tolist(),
        sums=(scores * mask).sum(axis=(1, 2))[asked].tolist(),
        within=((scores - trial[:, :, None]) ** 2 * mask).sum(axis=(1, 2))[asked].tolist(),
        between=((trial - question[:, None]) ** 2 * m).sum(axis=1)[asked].tolist(),
    )


def components(scores: FloatArray, arms: int = 1) -> Components:
    """The components of an array of questions by repetitions by gradings, dealt to arms in turn."""
    every = np.ones(scores.shape, dtype=bool)
    return variance_components([graded(scores[arm::arms], every[arm::arms]) for arm in range(arms)])


def planted(questions: int, repetitions: int, gradings: int, seed: int = 1) -> FloatArray:
    rng = np.random.default_rng(seed)
    question = rng.normal(0, 2, (questions, 1, 1))
    trial = question + rng.normal(0, 1, (questions, repetitions, 1))
    return np.asarray(100 + trial + rng.normal(0, 0.5, (questions, repetitions, gradings)))


def test_balanced_data_have_the_mean_squares_of_the_analysis_of_variance() -> None:
    scores = planted(8, 4, 3)

    found = components(scores)

    trial, question = scores.mean(axis=2), scores.mean(axis=(1, 2))
    judging = np.mean(np.var(scores, axis=2, ddof=1))
    between_trials = 3 * np.mean(np.var(trial, axis=1, ddof=1))
    between_questions = 12 * np.var(question, ddof=1)
    expected = ((between_questions - between_trials) / 12, (between_trials - judging) / 3, judging)
    assert pytest.approx(expected, rel=1e-9) == (found.question, found.repetition, found.judging)


def test_arms_may_differ_in_their_means() -> None:
    scores = planted(40, 3, 2)
    shifted = scores + 50 * (np.arange(40) % 2)[:, None, None]

    # The same but for rounding: sums of squares are taken about a common center.
    one, other = components(scores, arms=2), components(shifted, arms=2)
    assert pytest.approx((one.question, one.repetition, one.judging), rel=1e-6) == (
        other.question,
        other.repetition,
        other.judging,
    )


def test_unbalanced_data_give_the_planted_components_on_average() -> None:
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores = planted(30, 4, 3, seed)
        kept = rng.random(scores.shape) < 0.6
        one = variance_components([graded(scores, kept)])
        found.append((one.question, one.repetition, one.judging))

    assert pytest.approx((4, 1, 0.25), rel=0.06) == tuple(np.mean(np.array(found, dtype=float), axis=0))


def test_what_was_not_repeated_is_unknown_and_negative_estimates_are_zero() -> None:
    opposite = np.array([[[0.0], [1.0]], [[1.0], [0.0]]])

    assert Components(0.0, 0.5, None) == components(opposite)
    once = components(planted(6, 1, 1))
    assert (None, None) == (once.repetition, once.judging)
    assert once.question is not None
    assert Components(None, None, None) == components(planted(1, 1, 1))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (Components(4.0, 1.0, None), "Ask more questions: 89 % "),
        (Components(1.0, 4.0, 0.1), "Repeat more, or ask more questions: 66 % "),
        (Components(0.1, 0.1, 4.0), "Have answers graded more often: 93 % "),
        (Components(4.0, None, None), "Ask more questions, or repeat: 100 % "),
        (Components(0.0, 0.0, None), "All scores are the same"),
        (Components(None, None, None), "Ask more questions: results on one question"),
    ],
    ids=lambda given: "",
)
def test_the_advice_names_what_makes_most_of_the_error(given: Components, sentence: str) -> None:
    assert advice(given, repetitions=2, gradings=1).startswith(sentence)
