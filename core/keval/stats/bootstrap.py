"""The bias-corrected and accelerated bootstrap interval of a mean."""

from __future__ import annotations

import numpy as np
from scipy import special

from keval.stats.moments import FloatArray, IntArray, moments

__all__ = ["bca_interval"]

_AT_ONCE = 200_000
"""Draws that are held in memory at a time."""

_MANY = 250
"""Above so many independent samples, the distribution of a mean is known better from its cumulants than by drawing."""


def bca_interval(
    differences: FloatArray,
    *,
    clusters: IntArray | None = None,
    level: float = 0.95,
    seed: int,
    resamples: int = 2000,
) -> tuple[float, float] | None:
    """Return the BCa interval of a mean, resampling clusters where there are any; `None` where nothing differs.

    Source: Efron, Better bootstrap confidence intervals, JASA 82 (1987), 171-185. Above 250 samples or clusters, the
    quantiles of the bootstrap distribution are those of its Cornish-Fisher expansion and nothing is drawn.
    """
    found = moments(differences, clusters)
    if found is None or not found.stderr:
        return None
    sums, sizes = differences, np.ones(len(differences))
    if clusters is not None:
        _, numbers = np.unique(clusters, return_inverse=True)
        sums, sizes = (np.bincount(numbers, weights).astype(np.float64) for weights in (differences, sizes))
    influence = sums - found.mean * sizes
    root = float(np.sqrt(np.sum(influence**2)))
    acceleration = float(np.sum((influence / root) ** 3)) / 6
    tails = special.ndtri([(1 - level) / 2, (1 + level) / 2])
    if len(sums) > _MANY:
        # The bias correction of a mean is its skewness over 6, which is the acceleration.
        shifted = special.ndtri(_adjusted(tails, acceleration, acceleration))
        ends = found.mean + root / len(differences) * (shifted + acceleration * (shifted**2 - 1))
        return float(ends[0]), float(ends[1])
    means = _resampled(sums, None if clusters is None else sizes, seed, resamples)
    hair = 1e-12 * np.max(np.abs(differences))  # a mean of the same values in another order differs by rounding
    below = (np.mean(means < found.mean - hair) + np.mean(means <= found.mean + hair)) / 2
    at = _adjusted(tails, float(special.ndtri(below)), acceleration) * (resamples - 1)
    ends = np.interp(at, np.arange(resamples), np.sort(means))
    return float(ends[0]), float(ends[1])


def _adjusted(tails: FloatArray, bias: float, acceleration: float) -> FloatArray:
    """Return the probabilities whose quantiles are the interval's ends (equations 6.8 and 6.9)."""
    shifted = bias + tails
    return np.asarray(special.ndtr(bias + shifted / (1 - acceleration * shifted)))


def _resampled(sums: FloatArray, sizes: FloatArray | None, seed: int, resamples: int) -> FloatArray:
    rng = np.random.default_rng(seed % 2**64)  # a config's seed may be negative
    n, means = len(sums), np.empty(resamples)
    chunk = max(1, _AT_ONCE // n)
    for start in range(0, resamples, chunk):
        drawn = rng.integers(0, n, (min(chunk, resamples - start), n), dtype=np.int32)
        total = n if sizes is None else sizes.take(drawn).sum(axis=1)
        means[start : start + chunk] = sums.take(drawn).sum(axis=1) / total
    return means
