"""Where the variance of scores comes from: questions, repetitions, and the judge."""

from __future__ import annotations

import attrs
import numpy as np

from keval.stats.moments import FloatArray, IntArray

__all__ = ["Components", "advice", "variance_components"]


@attrs.frozen
class Components:
    """Variances between samples, between the trials of a sample, and between a judge's gradings of an answer.

    `None` where nothing was repeated; that variance is then part of the one before.
    """

    question: float | None
    repetition: float | None
    judging: float | None


def variance_components(
    arms: IntArray, samples: IntArray, counts: IntArray, sums: FloatArray, squares: FloatArray
) -> Components:
    """Estimate the components of nested data, which may be unbalanced; negative estimates are 0.

    Arrays have one entry per trial: the numbers of its arm and its sample, how many gradings it has, their sum and the
    sum of their squares. Means of arms are taken out. Source: Searle, Casella and McCulloch, Variance Components
    (1992), appendix F.2: sums of squares of the nested analysis of variance equal their expectations.
    """
    if not len(counts):
        return Components(None, None, None)
    m = counts.astype(np.float64)
    # Scores far from 0 would lose digits in the sums of squares.
    center = float(sums.sum() / m.sum())
    squares = squares - 2 * center * sums + center**2 * m
    sums = sums - center * m
    _, arm_of = np.unique(arms, return_inverse=True)
    _, question_of = np.unique(np.stack([arms, samples]), axis=1, return_inverse=True)
    question_of = question_of.reshape(-1)

    def grouped(groups: IntArray) -> tuple[FloatArray, FloatArray]:
        return np.bincount(groups, m).astype(np.float64), np.bincount(groups, sums).astype(np.float64)

    (m_question, sum_question), (m_arm, sum_arm) = grouped(question_of), grouped(arm_of)
    arm_of_question = np.zeros(len(m_question), dtype=np.int64)
    arm_of_question[question_of] = arm_of
    trials, questions, groups = len(m), len(m_question), len(m_arm)
    by_trial, by_question = float(np.sum(sums**2 / m)), float(np.sum(sum_question**2 / m_question))
    by_arm = float(np.sum(sum_arm**2 / m_arm))

    judging = _ratio(float(np.sum(squares)) - by_trial, float(np.sum(m)) - trials)
    in_question = float(np.sum(m**2 / m_question[question_of]))
    in_arm = float(np.sum(m**2 / m_arm[arm_of]))
    rest = (trials - questions) * (judging or 0.0)
    repetition = _ratio(by_trial - by_question - rest, float(np.sum(m)) - in_question if trials > questions else 0.0)
    rest = (questions - groups) * (judging or 0.0) + (in_question - in_arm) * (repetition or 0.0)
    left = float(np.sum(m) - np.sum(m_question**2 / m_arm[arm_of_question])) if questions > groups else 0.0
    question = _ratio(by_question - by_arm - rest, left)
    found = (None if part is None else max(0.0, part) for part in (question, repetition, judging))
    return Components(*found)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def advice(components: Components, *, samples: float, repetitions: float, gradings: float) -> str:
    """Return one sentence on what would make the standard error of an arm's mean smaller.

    `samples`, `repetitions` per sample and `gradings` per trial are the present counts.
    """
    parts = {
        "question": (components.question or 0.0) / samples,
        "repetition": (components.repetition or 0.0) / (samples * repetitions),
        "judging": (components.judging or 0.0) / (samples * repetitions * gradings),
    }
    total = sum(parts.values())
    if components.question is None:
        return "Ask more questions: one question shows nothing about others."
    if total <= 0:
        return "Nothing varies: neither questions nor repetitions differ in score."
    most = max(parts, key=lambda part: parts[part])
    share = f"{parts[most] / total:.0%} of the variance of a mean comes from"
    if most == "judging":
        return f"Have answers graded more often: {share} the judge, who grades the same answer differently."
    if most == "repetition":
        return f"Repeat more, or ask more questions: {share} answers that differ between repetitions."
    if components.repetition is None:
        return f"Ask more questions, or repeat: {share} questions, and without repetitions from chance as well."
    return f"Ask more questions: {share} how they differ, which repetitions do not reduce."
