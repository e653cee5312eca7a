"""Means with their standard errors, and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import attrs
import numpy as np

from keval.analysis.stats.units import FloatArray, IntArray, Units, moments
from keval.analysis.stats.weighted_means import WeightedMeans


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


_FEW = 10
"""Fewer samples than this off the commonest value are too few for a standard error; by bench/interval_coverage.py."""


@attrs.frozen(eq=False)
class Values:
    """One value per sample, on a scale from `low` to `high`, either of which may be infinite.

    Samples with the same number in `clusters` are not independent; `None` if all are.
    """

    values: FloatArray
    clusters: IntArray | None
    low: float
    high: float

    @property
    def is_bounded(self) -> bool:
        """Whether the scale has two ends."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def scatters_little(self) -> bool:
        """Whether more than half of the samples have the same value and fewer than 10 another.

        Clusters count instead of samples if there are any; a cluster has another value if one of its samples does.
        """
        largest = float(np.max(np.abs(self.values))) or 1.0
        _, numbers, counts = np.unique(np.round(self.values / largest, 9), return_inverse=True, return_counts=True)
        other = numbers != np.argmax(counts)
        if self.clusters is None:
            units, others = len(self.values), int(np.sum(other))
        else:
            units, others = len(np.unique(self.clusters)), len(np.unique(self.clusters[other]))
        return others < _FEW and 2 * others < units


@attrs.frozen
class Interval:
    """An interval, and the `method` that made it: `skew_t` or `bounded`."""

    low: float
    high: float
    method: str


def mean_intervals(rows: Sequence[Values], level: float = 0.95) -> list[Interval | None]:
    """Return the interval of each mean: `bounded` where values scatter little on a scale with two ends, else `skew_t`.

    `None` for fewer than two samples or clusters, and for equal values on a scale without an end. `bounded` asks what
    the scale leaves possible: it has the means under random weights of the samples and of one that nobody saw, which
    lies at either end of the scale. Of 0/1 data it is the mid-p interval of a proportion. Source: the weights are
    Rubin's, and the further sample is Gaffke's, Three test statistics for a nonparametric one-sided hypothesis on the
    mean of a nonnegative variable, Mathematical Methods of Statistics 14 (2005), 451-467, with half the weight at
    either end; Berry and Armitage, Mid-P confidence intervals, The Statistician 44 (1995), 417-423.
    """
    units = Units.of((row.values, row.clusters) for row in rows)
    found = moments(units)
    enough = units.count > 1
    # Clusters may have the same mean though their samples differ.
    bounded = np.array(
        [
            bool(several) and row.is_bounded and (stderr == 0 or row.scatters_little)
            for several, row, stderr in zip(enough, rows, found.stderr, strict=True)
        ],
        np.bool_,
    )
    low, high = found.skew_t(level)
    low, high = np.maximum(low, [row.low for row in rows]), np.minimum(high, [row.high for row in rows])
    at = np.flatnonzero(bounded)
    weighted = WeightedMeans(
        units[at], np.array([(rows[i].low, rows[i].high) for i in at.tolist()], np.float64).reshape(-1, 2)
    )
    low[at], high[at] = weighted.quantiles((1 - level) / 2), weighted.quantiles((1 + level) / 2)
    known = enough & (bounded | (found.stderr > 0))
    return [
        Interval(float(a), float(b), "bounded" if by_scale else "skew_t") if ok else None
        for a, b, by_scale, ok in zip(low, high, bounded, known, strict=True)
    ]


@attrs.frozen
class Estimate:
    """A mean over `n` samples with its standard error, for a t distribution with `df` degrees of freedom.

    `mean` is `None` without a sample; `stderr` and `df` are `None` for fewer than two samples, or a single cluster.
    """

    n: int
    mean: float | None
    stderr: float | None
    df: float | None


def estimate(values: FloatArray, clusters: IntArray | None = None) -> Estimate:
    """Estimate a mean from one value per sample; samples with the same number in `clusters` are not independent.

    Source: Miller, Adding Error Bars to Evals, arXiv 2411.00640: the standard error is equation 1, and for clusters
    equation 4 with the correction for few clusters that `moments` names.
    """
    n = len(values)
    if not n:
        return Estimate(0, None, None, None)
    found = moments(Units.of([(values, clusters)]))
    mean, stderr, df = (float(part[0]) for part in (found.mean, found.stderr, found.df))
    return Estimate(n, mean, None, None) if math.isnan(stderr) else Estimate(n, mean, stderr, df)
