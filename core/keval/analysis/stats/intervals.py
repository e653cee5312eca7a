"""Means with their standard errors, and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
from scipy import special


def quantile(values: Collection[float], share: float) -> float | None:
    """Return the value that this share of the values lies below, between the two nearest; `None` without values.

    Source: Hyndman and Fan 1996, Sample Quantiles in Statistical Packages, definition 7, which NumPy uses, too.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


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


_FEW = 10
"""Fewer samples than this off the commonest value are too few for a standard error; by bench/interval_coverage.py."""

_STEPS, _ROUNDS = 65, 4


@attrs.frozen
class Interval:
    """An interval, and the `method` that made it: `skew_t` or `bounded`."""

    low: float
    high: float
    method: str


def mean_interval(
    values: FloatArray, *, clusters: IntArray | None = None, low: float, high: float, level: float = 0.95
) -> Interval | None:
    """Return the interval of a mean on a scale from `low` to `high`, either of which may be infinite.

    `None` for fewer than two samples or clusters, and for equal values on a scale without an end.
    """
    found = moments(values, clusters)
    if found is None:
        return None
    # Clusters may have the same mean though their samples differ.
    if math.isfinite(low) and math.isfinite(high) and (not found.stderr or scatters_little(values, clusters)):
        return Interval(*_bounded(values, clusters, low, high, level), "bounded")
    if not found.stderr:
        return None
    ends = _skew_t(found, level)
    return Interval(max(low, ends[0]), min(high, ends[1]), "skew_t")


def difference_interval(
    differences: FloatArray, *, clusters: IntArray | None = None, span: float, level: float = 0.95
) -> Interval | None:
    """Return the interval of a mean paired difference on a scale of the width `span`, which may be infinite.

    `None` for fewer than two samples or clusters, and for equal differences on a scale without an end.
    """
    return mean_interval(differences, clusters=clusters, low=-span, high=span, level=level)


def scatters_little(values: FloatArray, clusters: IntArray | None = None) -> bool:
    """Return whether more than half of the samples have the same value and fewer than 10 another.

    Clusters count instead of samples if there are any; a cluster has another value if one of its samples does.
    """
    largest = float(np.max(np.abs(values))) or 1.0
    _, numbers, counts = np.unique(np.round(values / largest, 9), return_inverse=True, return_counts=True)
    other = numbers != np.argmax(counts)
    if clusters is None:
        units, others = len(values), int(np.sum(other))
    else:
        units, others = len(np.unique(clusters)), len(np.unique(clusters[other]))
    return others < _FEW and 2 * others < units


def t_quantile(df: float, level: float) -> float:
    """Return how many standard errors a t interval reaches to either side."""
    return float(special.stdtrit(df, (1 + level) / 2))


def hall(studentized: float, skewness: float) -> float:
    """Return a studentized mean with the skewness of its distribution removed.

    Source: Hall, On the removal of skewness by transformation, JRSS B 54 (1992), 221-228, the cubic transformation.
    """
    return studentized + skewness * (studentized**2 / 3 + 1 / 6) + skewness**2 * studentized**3 / 27


def _inverse_hall(corrected: float, skewness: float) -> float:
    if abs(skewness) < 1e-6:
        return corrected
    return (math.cbrt(1 + skewness * (corrected - skewness / 6)) - 1) * 3 / skewness


def _skew_t(found: Moments, level: float) -> tuple[float, float]:
    """Return the t interval, extended to where Hall's interval ends on the side to which that one is shifted.

    Hall's alone is too narrow for symmetric data with rare large values, whose skewness is seen where there is none.
    """
    reach = t_quantile(found.df, level)
    below = max(reach, _inverse_hall(reach, found.skewness))
    above = max(reach, -_inverse_hall(-reach, found.skewness))
    return found.mean - below * found.stderr, found.mean + above * found.stderr


def _bounded(
    values: FloatArray, clusters: IntArray | None, low: float, high: float, level: float
) -> tuple[float, float]:
    """Return Gaffke's interval: of the mean under random weights of the samples and of one more at the scale's end.

    The weights are those of the Bayesian bootstrap (a flat Dirichlet distribution), and the further sample lies at the
    lower end of the scale for the lower end of the interval, at the upper for the upper. Of 0/1 data this is the
    interval of Clopper and Pearson. Clusters count as as many independent samples as clusters of one size would be.
    Source: Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable, Mathematical Methods of Statistics 14 (2005), 451-467; Learned-Miller and Thomas, A new confidence
    interval for the mean of a bounded random variable, arXiv 1905.06208.
    """
    places, weights = (values - low) / (high - low), np.ones(len(values))
    if clusters is not None:
        _, numbers, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        places = np.bincount(numbers, weights=places) / sizes
        weights = sizes * (np.sum(sizes) / np.sum(sizes**2))
    # Averages of equal scores differ by rounding.
    places, numbers = np.unique(np.round(np.clip(places, 0, 1), 12), return_inverse=True)
    weights = np.bincount(numbers, weights=weights).astype(np.float64)
    tail = (1 - level) / 2
    lower, upper = _lower_end(places, weights, tail), 1 - _lower_end(1 - places, weights, tail)
    return low + lower * (high - low), low + upper * (high - low)


def _lower_end(places: FloatArray, weights: FloatArray, tail: float) -> float:
    """Return the quantile of a Dirichlet-weighted mean of places in [0, 1], and of 0 with weight 1.

    A weighted mean is at most c where a sum of gamma variables with factors x - c is at most 0. That probability is
    Lugannani and Rice's (1980) saddlepoint approximation, which is exact to about 1 % of the tail. The saddlepoint is
    known for given r as c = Σ w x / (1 + r x) / Σ w / (1 + r x), so that only r is searched for.
    """
    places, weights = np.append(places, 0.0), np.append(weights, 1.0)
    values = np.unique(places)
    if len(values) == 1:
        return 0.0
    if len(values) == 2:
        above = float(np.sum(weights[places > 0]))
        return float(values[1] * special.betaincinv(above, float(np.sum(weights)) - above, tail))
    low, high = -20.0, 40.0
    means = probabilities = np.empty(0)
    for _ in range(_ROUNDS):
        exponents = np.linspace(low, high, _STEPS)
        means, probabilities = _weighted_mean_cdf(places, weights, np.exp(exponents))
        # The mean, and with it the probability, falls with r.
        at = int(np.clip(np.searchsorted(-probabilities, -tail), 1, _STEPS - 1))
        low, high = float(exponents[at - 1]), float(exponents[at])
    return float(np.interp(tail, probabilities[::-1], means[::-1]))


def _weighted_mean_cdf(places: FloatArray, weights: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for each `r` a place and the probability that the weighted mean is at most there."""
    tilted = weights / (1 + r[:, None] * places)
    total = np.sum(tilted, axis=1)
    means = tilted @ places / total
    s = -r * total / np.sum(weights)
    factors = 1 - s[:, None] * (places - means[:, None])
    log_mgf = -np.log(factors) @ weights
    curvature = (weights * (places - means[:, None]) ** 2 / factors**2).sum(axis=1)
    w = -np.sqrt(np.maximum(-2 * log_mgf, 0))
    u = s * np.sqrt(curvature)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = special.ndtr(w) + np.exp(-(w**2) / 2) / math.sqrt(2 * math.pi) * (1 / w - 1 / u)
    # Near the middle, where the formula divides by nearly 0, no tail is looked for.
    return means, np.where(w > -0.05, 0.5, np.clip(found, 0, 0.5))


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
