"""How the repetitions of a sample differ, and where the variance of scores comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs
import numpy as np
from scipy import special

from keval.analysis.stats.units import FloatArray, IntArray


def pass_at_k(n: IntArray, c: IntArray, k: int) -> float | None:
    """Return pass@k: the probability that at least one of k repetitions passes, as a mean over samples.

    Samples with fewer than k repetitions do not count; `None` if there is no other. Source: Chen et al., Evaluating
    Large Language Models Trained on Code, arXiv 2107.03374, equation 1: 1 - C(n-c, k) / C(n, k), which is unbiased.
    """
    none = _all_of(n, n - c, k)
    return None if none is None else 1 - none


def pass_all_k(n: IntArray, c: IntArray, k: int) -> float | None:
    """Return pass^k: the probability that all of k repetitions pass, as a mean over samples.

    Samples with fewer than k repetitions do not count; `None` if there is no other. Source: Yao et al., τ-bench, arXiv
    2406.12045, section 4: C(c, k) / C(n, k).
    """
    return _all_of(n, c, k)


def _all_of(n: IntArray, c: IntArray, k: int) -> float | None:
    enough = n >= k
    if k < 1 or not np.any(enough):
        return None
    return float(np.mean(special.binom(c[enough], k) * (c[enough] >= k) / special.binom(n[enough], k)))


def flip_rate(n: IntArray, c: IntArray) -> float | None:
    """Return the probability that one of two repetitions passes and the other does not, as a mean over samples.

    Samples with one repetition do not count; `None` if there is no other.
    """
    enough = n > 1
    if not np.any(enough):
        return None
    n, c = n[enough], c[enough]
    return float(np.mean(2 * c * (n - c) / (n * (n - 1))))


def pooled_sd(n: IntArray, sums: FloatArray, squares: FloatArray) -> float | None:
    """Return the standard deviation of scores about their own sample's mean, from sums of scores and their squares.

    `None` if no sample has two scores.
    """
    enough = n > 1
    freedom = int(np.sum(n[enough] - 1))
    if not freedom:
        return None
    within = squares[enough] - sums[enough] ** 2 / n[enough]
    return math.sqrt(max(0.0, float(np.sum(within))) / freedom)


@attrs.frozen
class Components:
    """Variances between samples, between the trials of a sample, and between a judge's gradings of an answer.

    `None` where nothing was repeated; that variance is then part of the one before.
    """

    question: float | None
    repetition: float | None
    judging: float | None


@attrs.frozen(eq=False)
class Graded:
    """The gradings of one arm, as arrays with one entry per sample; a metric grades each trial once.

    `trials` is how many trials a sample has. `gradings` is the sum over these of m, how often each was graded, and
    `gradings_squared` that of m². `sums` and `squares` are the sums of all gradings and of their squares, and `between`
    is the sum over trials of the squared sum of its gradings over m.
    """

    trials: IntArray
    gradings: IntArray
    gradings_squared: IntArray
    sums: FloatArray
    squares: FloatArray
    between: FloatArray

    def centred(self, center: float) -> Graded:
        """Return the sums as of gradings less a number. Scores far from 0 would lose digits in sums of squares."""
        taken = center**2 * self.gradings - 2 * center * self.sums
        return attrs.evolve(
            self,
            sums=self.sums - center * self.gradings,
            squares=self.squares + taken,
            between=self.between + taken,
        )


def variance_components(arms: Sequence[Graded]) -> Components:
    """Estimate the components of nested data, which may be unbalanced; negative estimates are 0.

    Means of arms are taken out. Source: Searle, Casella and McCulloch, Variance Components (1992), appendix F.2: sums
    of squares of the nested analysis of variance equal their expectations.
    """
    arms = [arm for arm in arms if len(arm.trials)]
    if not arms:
        return Components(None, None, None)
    center = sum(float(arm.sums.sum()) for arm in arms) / sum(int(arm.gradings.sum()) for arm in arms)
    arms = [arm.centred(center) for arm in arms]

    def total(of: Callable[[Graded], FloatArray | IntArray]) -> float:
        return sum(float(np.sum(of(arm))) for arm in arms)

    trials, questions, groups = total(lambda arm: arm.trials), sum(len(arm.trials) for arm in arms), len(arms)
    gradings = total(lambda arm: arm.gradings)
    by_trial = total(lambda arm: arm.between)
    by_question = total(lambda arm: arm.sums**2 / arm.gradings)
    by_arm = total(lambda arm: arm.sums.sum() ** 2 / arm.gradings.sum())
    in_question = total(lambda arm: arm.gradings_squared / arm.gradings)
    in_arm = total(lambda arm: arm.gradings_squared.sum() / arm.gradings.sum())
    of_questions = total(lambda arm: (arm.gradings**2).sum() / arm.gradings.sum())

    judging = _ratio(total(lambda arm: arm.squares) - by_trial, gradings - trials)
    rest = (trials - questions) * (judging or 0.0)
    repetition = _ratio(by_trial - by_question - rest, gradings - in_question if trials > questions else 0.0)
    rest = (questions - groups) * (judging or 0.0) + (in_question - in_arm) * (repetition or 0.0)
    question = _ratio(by_question - by_arm - rest, gradings - of_questions if questions > groups else 0.0)
    found = (None if part is None else max(0.0, part) for part in (question, repetition, judging))
    return Components(*found)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def advice(
    components: Components, *, samples: float, repetitions: float, gradings: float, difference: float | None = None
) -> str:
    """Return one sentence on what would make the standard error of a difference smaller; of a mean, if none is known.

    `samples`, `repetitions` per sample and `gradings` per trial are the present counts, and `difference` is the
    variance of the samples' differences between two arms. It has the repetitions and gradings of both arms, and what is
    left is how differently questions change; how hard they are is not part of it.
    """
    if components.question is None:
        return "Ask more questions: results on one question do not generalise."
    arms, what = (1, "a mean") if difference is None else (2, "a difference")
    repeated = arms * (components.repetition or 0.0) / repetitions
    judged = arms * (components.judging or 0.0) / (repetitions * gradings)
    rest = components.question if difference is None else max(0.0, difference - repeated - judged)
    parts = {"question": rest, "repetition": repeated, "judging": judged}
    total = sum(parts.values())
    if total <= 0:
        return "All scores are the same, so neither more questions nor more repetitions help."
    most = max(parts, key=lambda part: parts[part])
    share = f"{parts[most] / total:.0%} of the variance of {what} comes from"
    if most == "judging":
        return f"Have answers graded more often: {share} the judge, who grades the same answer differently."
    if most == "repetition":
        return f"Repeat more, or ask more questions: {share} answers that differ between repetitions."
    if components.repetition is None:
        return f"Ask more questions, or repeat: {share} questions, and without repetitions from chance as well."
    return f"Ask more questions: {share} how they differ, which repetitions do not reduce."
