"""Means over samples and their standard errors, for samples that may share a source.

One value per sample: repetitions are averaged before, so that repeating a question makes no error smaller.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

_ROUNDING = 1e-12
"""Values that differ by less than this share of the largest are equal: averages of equal scores differ by rounding."""


@attrs.frozen
class Estimate:
    """A mean over `n` samples with its standard error, for a t distribution with `df` degrees of freedom.

    `mean` is `None` without a sample; `stderr` and `df` are `None` for fewer than two samples, or a single cluster.
    """

    n: int
    mean: float | None
    stderr: float | None
    df: float | None


@attrs.frozen
class Moments:
    """The mean of at least two independent units, its standard error, and the skewness of its distribution."""

    mean: float
    stderr: float
    df: float
    skewness: float


def estimate(values: FloatArray, clusters: IntArray | None = None) -> Estimate:
    """Estimate a mean from one value per sample; samples with the same number in `clusters` are not independent.

    Source: Miller, Adding Error Bars to Evals, arXiv 2411.00640: the standard error is equation 1, and for clusters
    equation 4 with the correction for few clusters that `moments` names.
    """
    n = len(values)
    if not n:
        return Estimate(0, None, None, None)
    found = moments(values, clusters)
    if found is None:
        return Estimate(n, float(np.mean(values)), None, None)
    return Estimate(n, found.mean, found.stderr, found.df)


def moments(values: FloatArray, clusters: IntArray | None = None) -> Moments | None:
    """Return the moments of a mean, or `None` for fewer than two samples or clusters.

    The standard error of clustered samples is CR2, and `df` are those of Bell and McCaffrey (2002), Bias reduction in
    standard errors for linear regression with multi-stage samples, for a regression on a constant. Without clusters
    these are the usual s/√n with n - 1 degrees of freedom; with clusters of one size, clusters - 1.
    """
    n = len(values)
    if n < 2:
        return None
    mean = float(np.mean(values))
    residuals = values - mean
    if np.ptp(values) <= _ROUNDING * np.max(np.abs(values)):
        mean, residuals = float(values[0]), np.zeros(n)
    if clusters is None:
        sums, shares, df = residuals, np.full(n, 1 / n), float(n - 1)
    else:
        _, numbers = np.unique(clusters, return_inverse=True)
        sums = np.bincount(numbers, weights=residuals).astype(np.float64)
        if len(sums) < 2:
            return None
        sums[np.abs(sums) <= _ROUNDING * np.sum(np.abs(values))] = 0.0
        shares = np.bincount(numbers) / n
        squares = shares**2 / (1 - shares)
        df = 1 / float(np.sum(shares**2) + np.sum(squares) ** 2 - np.sum(squares**2))
    stderr = float(np.sqrt(np.sum(sums**2 / (1 - shares)))) / n
    # Divided before it is cubed: the cube of a small or large error is no number.
    skewness = float(np.sum((sums / n / stderr) ** 3)) if stderr else 0.0
    return Moments(mean, stderr, df, skewness)
