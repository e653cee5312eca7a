"""How the repetitions of a sample differ.

Arrays have one entry per sample: `n` scored repetitions, of which `c` pass.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from keval.stats.moments import FloatArray, IntArray

__all__ = ["flip_rate", "pass_all_k", "pass_at_k", "pooled_sd"]


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
