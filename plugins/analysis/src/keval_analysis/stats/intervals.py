"""Means with their standard errors, and their confidence intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from keval_analysis.stats.units import FloatArray, Moments


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


@attrs.frozen(eq=False, slots=False)
class Values:
    """One value per sample, on a scale from `low` to `high`, either of which may be infinite.

    Samples with the same number in `clusters` are not independent; `None` if all are.
    """

    values: Collection[float]
    clusters: Collection[int] | None
    low: float
    high: float

    @property
    def scatters_little(self) -> bool:
        """Whether more than half of the samples have the same value and fewer than 10 another.

        Clusters count instead of samples if there are any; a cluster has another value if one of its samples does.
        """
        largest = max(map(abs, self.values)) or 1.0
        # Means of equal scores may differ by rounding.
        rounded = [round(value / largest, 9) for value in self.values]
        counts = Counter(rounded)
        most = max(counts.values())
        # Of several values that are as common, the least, so that the order of the samples decides nothing.
        commonest = min(value for value, count in counts.items() if count == most)
        if self.clusters is None:
            units, others = len(rounded), len(rounded) - most
        else:
            units = len({*self.clusters})
            others = len({of for of, value in zip(self.clusters, rounded, strict=True) if value != commonest})
        return others < _FEW and 2 * others < units

    @cached_property
    def moments(self) -> Moments:
        """The moments of the mean of the values, in a single row."""
        from keval_analysis.stats.units import Units, moments  # NumPy and SciPy take a third of a second to import

        return moments(Units.of([(self.values, self.clusters)]))

    @property
    def mean(self) -> float | None:
        """The mean of the values; `None` without one."""
        # Exactly rounded, so that the order of the samples decides no digit; equal values are their own mean.
        return math.fsum(self.values) / len(self.values) if self.stderr else _known(self.moments.mean)

    @property
    def stderr(self) -> float | None:
        """The standard error of the mean; `None` for fewer than two samples, or a single cluster."""
        return _known(self.moments.stderr)

    @cached_property
    def method(self) -> Literal["skew_t", "bounded"] | None:
        """How the interval of the mean is made, as `mean_intervals` says; `None` if there is none."""
        if self.stderr is None:
            return None
        is_bounded = math.isfinite(self.low) and math.isfinite(self.high)
        if is_bounded and (not self.stderr or self.scatters_little):
            return "bounded"
        return "skew_t" if self.stderr else None


def _known(figure: FloatArray) -> float | None:
    return None if math.isnan(figure[0]) else float(figure[0])


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
    found: list[Interval | None] = [None] * len(rows)
    for place, row in enumerate(rows):
        if row.method == "skew_t":
            low, high = (float(end[0]) for end in row.moments.skew_t(level))
            found[place] = Interval(max(low, row.low), min(high, row.high), "skew_t")
    weighed = {place: row for place, row in enumerate(rows) if row.method == "bounded"}
    if weighed:
        from keval_analysis.stats.weighted_means import bounded_ends  # as above

        units = [(row.values, row.clusters) for row in weighed.values()]
        ends = bounded_ends(units, [(row.low, row.high) for row in weighed.values()], level)
        for place, (low, high) in zip(weighed, ends, strict=True):
            found[place] = Interval(low, high, "bounded")
    return found
