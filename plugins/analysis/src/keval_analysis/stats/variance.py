"""How the repetitions of a sample differ, and where the variance of scores comes from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import mul, sub, truediv

import attrs

from keval.records.formats import percent


def pass_at_k(n: Sequence[int], c: Sequence[int], k: int) -> float | None:
    """Return pass@k: the probability that at least one of k repetitions passes, as a mean over samples.

    Sample by sample, `n` is how many repetitions there are, and `c` how many pass. Samples with fewer than k
    repetitions do not count; `None` if there is no other. Source: Chen et al., Evaluating Large Language Models Trained
    on Code, arXiv 2107.03374, equation 1: 1 - C(n-c, k) / C(n, k), which is unbiased.
    """
    none = pass_all_k(n, [*map(sub, n, c)], k)
    return None if none is None else 1 - none


def pass_all_k(n: Sequence[int], c: Sequence[int], k: int) -> float | None:
    """Return pass^k: the probability that all of k repetitions pass, as a mean over samples.

    Samples with fewer than k repetitions do not count; `None` if there is no other. Source: Yao et al., τ-bench, arXiv
    2406.12045, section 4: C(c, k) / C(n, k).
    """
    if k < 1:
        return None
    return _mean(n, c, k, lambda many, passed: math.comb(passed, k) / math.comb(many, k))


def flip_rate(n: Sequence[int], c: Sequence[int]) -> float | None:
    """Return the probability that one of two repetitions passes and the other does not, as a mean over samples.

    Samples with one repetition do not count; `None` if there is no other.
    """
    return _mean(n, c, 2, lambda many, passed: 2 * passed * (many - passed) / (many * (many - 1)))


def _mean(n: Sequence[int], c: Sequence[int], least: int, of: Callable[[int, int], float]) -> float | None:
    """Return the mean of a figure over the samples with at least so many repetitions."""
    # There are few pairs of n and c, however many samples there are.
    alike = Counter(each for each in zip(n, c, strict=True) if each[0] >= least)
    samples = alike.total()
    return math.fsum(of(*each) * count for each, count in alike.items()) / samples if samples else None


def pooled_sd(n: Sequence[int], squares: Sequence[float]) -> float | None:
    """Return the standard deviation of scores about their own sample's mean, from sums of the squares of these.

    `None` if no sample has two scores.
    """
    freedom = sum(n) - len(n)
    return math.sqrt(math.fsum(squares) / freedom) if freedom else None


def apart(n: float, mean: float, m: float, other: float) -> float:
    """Return by how much sums of squares about the mean grow where n values with a mean are joined by m others.

    Sums of the squares themselves would lose the digits of scores far from 0. Source: Chan, Golub and LeVeque,
    Algorithms for Computing the Sample Variance, The American Statistician 37 (1983), 242-247.
    """
    return (mean - other) ** 2 * n * m / (n + m)


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
    """The gradings of one arm, with one entry per sample; a metric grades each trial once.

    `trials` is how many trials a sample has. `gradings` is the sum over these of m, how often each was graded, and
    `gradings_squared` that of m². `sums` are the sums of all gradings. `within` is the sum of squares of gradings less
    the mean of their trial, and `between` that of these means, m times each, less the mean of the sample.
    """

    trials: Sequence[int]
    gradings: Sequence[int]
    gradings_squared: Sequence[int]
    sums: Sequence[float]
    within: Sequence[float]
    between: Sequence[float]


def variance_components(arms: Sequence[Graded]) -> Components:
    """Estimate the components of nested data, which may be unbalanced; negative estimates are 0.

    Means of arms are taken out. Source: Searle, Casella and McCulloch, Variance Components (1992), appendix F.2: sums
    of squares of the nested analysis of variance equal their expectations.
    """
    arms = [arm for arm in arms if len(arm.trials)]
    if not arms:
        return Components(None, None, None)
    many = [sum(arm.gradings) for arm in arms]
    center = math.fsum(math.fsum(arm.sums) for arm in arms) / sum(many)
    # Variances stay the same, and the squares of sums keep their digits.
    arms = [
        attrs.evolve(arm, sums=[total - center * n for total, n in zip(arm.sums, arm.gradings, strict=True)])
        for arm in arms
    ]

    def total(of: Callable[[Graded], Iterable[float]]) -> float:
        return math.fsum(math.fsum(of(arm)) for arm in arms)

    def over_arms(of: Callable[[Graded], float]) -> float:
        return math.fsum(of(arm) / gradings for arm, gradings in zip(arms, many, strict=True))

    trials, questions, groups = total(lambda arm: arm.trials), sum(len(arm.trials) for arm in arms), len(arms)
    gradings = sum(many)
    by_question = total(lambda arm: map(truediv, map(mul, arm.sums, arm.sums), arm.gradings))
    by_arm = over_arms(lambda arm: math.fsum(arm.sums) ** 2)
    in_question = total(lambda arm: map(truediv, arm.gradings_squared, arm.gradings))
    in_arm = over_arms(lambda arm: sum(arm.gradings_squared))
    of_questions = over_arms(lambda arm: sum(map(mul, arm.gradings, arm.gradings)))

    judging = _ratio(total(lambda arm: arm.within), gradings - trials)
    rest = (trials - questions) * (judging or 0.0)
    repetition = _ratio(total(lambda arm: arm.between) - rest, gradings - in_question if trials > questions else 0.0)
    rest = (questions - groups) * (judging or 0.0) + (in_question - in_arm) * (repetition or 0.0)
    question = _ratio(by_question - by_arm - rest, gradings - of_questions if questions > groups else 0.0)
    found = (None if part is None else max(0.0, part) for part in (question, repetition, judging))
    return Components(*found)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def advice(components: Components, *, repetitions: float, gradings: float, difference: float | None = None) -> str:
    """Return one sentence on what would make the standard error of a difference smaller; of a mean, if none is known.

    `repetitions` per sample and `gradings` per trial are the present counts, and `difference` is the
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
    share = f"{percent(parts[most] / total)} of the variance of {what} comes from"
    if most == "judging":
        return f"Have answers graded more often: {share} the judge, who grades the same answer differently."
    if most == "repetition":
        return f"Repeat more, or ask more questions: {share} answers that differ between repetitions."
    if components.repetition is None:
        return f"Ask more questions, or repeat: {share} questions, and without repetitions from chance as well."
    return f"Ask more questions: {share} how they differ, which repetitions do not reduce."
