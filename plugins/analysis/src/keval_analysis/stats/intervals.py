"""Means with their standard errors, and their confidence intervals, one by one and without NumPy.

`keval_analysis.stats.units` has the same rules for many rows at once. Student's t distribution is here without SciPy,
which takes a quarter of a second and 30 MB to import.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, cached_property
from typing import Literal

import attrs


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
"""Fewer samples than this off the commonest value are too few for a standard error; by bench/verdicts.py."""
_ROUNDING = 1e-12
"""Values that differ by less than this share of the largest are equal: averages of equal scores differ by rounding."""


@attrs.frozen
class Estimate:
    """A mean over `n` samples with its standard error, for a t distribution with `df` degrees of freedom.

    `mean` is `None` without a sample; `stderr` and `df` are `None` for fewer than two samples, or a single cluster.
    `skewness` is that of the distribution of the mean.
    """

    n: int
    mean: float | None
    stderr: float | None
    df: float | None
    skewness: float = 0.0


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
    def estimate(self) -> Estimate:
        """The mean of the values, and how well it is known."""
        return estimate(self.values, self.clusters)

    @cached_property
    def method(self) -> Literal["skew_t", "bounded"] | None:
        """How the interval of the mean is made, as `mean_intervals` says; `None` if there is none."""
        if self.estimate.stderr is None:
            return None
        is_bounded = math.isfinite(self.low) and math.isfinite(self.high)
        if is_bounded and (not self.estimate.stderr or self.scatters_little):
            return "bounded"
        return "skew_t" if self.estimate.stderr else None


def estimate(values: Collection[float], clusters: Collection[int] | None = None) -> Estimate:
    """Estimate a mean from one value per sample; samples with the same number in `clusters` are not independent.

    Source: Miller, Adding Error Bars to Evals, arXiv 2411.00640: the standard error is equation 1, and for clusters
    equation 4 with the correction for few clusters that `keval_analysis.stats.units.moments` names.
    """
    if len(values) == 0:
        return Estimate(0, None, None, None)
    sums, sizes = _units(values, clusters)
    n = sum(sizes)
    mean = math.fsum(sums) / n
    if len(sums) < 2:
        return Estimate(n, mean, None, None)
    # Clusters with one mean would otherwise have the standard error of a rounding error.
    dust = _ROUNDING * math.fsum(map(abs, sums))
    apart = [total - mean * size for total, size in zip(sums, sizes, strict=True)]
    apart = [0.0 if abs(each) <= dust else each for each in apart]
    furthest = max(map(abs, apart))
    # Equal values have exactly this mean; their sum over n may be a hair off.
    mean = mean if furthest else sums[0] / sizes[0]
    # In units of the furthest one: the square of a small or large number is no number.
    apart = [each / (furthest or 1.0) for each in apart]
    spread = math.sqrt(math.fsum(r * r / (1 - size / n) for r, size in zip(apart, sizes, strict=True))) / n
    # A unit has this share of the values; `weights` are their squares over what is left.
    shares = [(size / n, count) for size, count in Counter(sizes).items()]
    weights = [(share * share / (1 - share), count) for share, count in shares]
    df = 1 / (
        math.fsum(share * share * count for share, count in shares)
        + math.fsum(weight * count for weight, count in weights) ** 2
        - math.fsum(weight * weight * count for weight, count in weights)
    )
    skewness = math.fsum((r / n / spread) ** 3 for r in apart) if furthest else 0.0
    return Estimate(n, mean, spread * furthest, df, skewness)


def _units(values: Collection[float], clusters: Collection[int] | None) -> tuple[Sequence[float], Sequence[int]]:
    """Return the sum and the number of the values of each independent unit."""
    known = [float(value) for value in values]
    least, most = min(known), max(known)
    largest = max(-least, most)
    if most - least <= _ROUNDING * largest:
        known = [known[0]] * len(known)
    sums: Sequence[float] = known
    sizes: Sequence[int] = [1] * len(known)
    if clusters is not None:
        totals: dict[int, float] = {}
        for of, value in zip(clusters, known, strict=True):
            totals[of] = totals.get(of, 0.0) + value
        counts = Counter(clusters)
        sums, sizes = [*totals.values()], [counts[of] for of in totals]
    return [0.0 if abs(a) <= _ROUNDING * largest * b else a for a, b in zip(sums, sizes, strict=True)], sizes


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
    found: list[Interval | None] = [_interval(row, level) for row in rows]
    weighed = {place: row for place, row in enumerate(rows) if found[place] is None and row.method == "bounded"}
    if weighed:
        from keval_analysis.stats.weighted_means import bounded_ends  # NumPy takes a tenth of a second to import

        units = [(row.values, row.clusters) for row in weighed.values()]
        ends = bounded_ends(units, [(row.low, row.high) for row in weighed.values()], level)
        for place, (low, high) in zip(weighed, ends, strict=True):
            found[place] = Interval(low, high, "bounded")
    return found


def _interval(row: Values, level: float) -> Interval | None:
    """Return the interval of a mean; `None` if it has none, or one that takes more than a formula."""
    method, found = row.method, row.estimate
    if method is None or found.mean is None or found.stderr is None or found.df is None:
        return None
    if method == "skew_t":
        reach = reach_of_t(found.df, level)
        below, above = max(reach, _unskewed(reach, found.skewness)), max(reach, -_unskewed(-reach, found.skewness))
        low, high = found.mean - below * found.stderr, found.mean + above * found.stderr
        return Interval(max(low, row.low), min(high, row.high), method)
    if found.stderr or row.clusters is not None:
        return None
    # Besides equal values there is the further sample alone, which has more than a share w of the weight with the
    # probability (1 - w)ⁿ.
    weight = 1 - (1 - level) ** (1 / found.n)
    low, high = (found.mean + weight * (end - found.mean) for end in (row.low, row.high))
    return Interval(low, high, method)


def _unskewed(corrected: float, skewness: float) -> float:
    """Return the studentized mean that Hall's transformation turns into `corrected`; see `Moments.skew_t` in units."""
    # The inverse divides by the skewness; without any, the transformation changes nothing.
    if abs(skewness) < 1e-6:
        return corrected
    return (math.cbrt(1 + skewness * (corrected - skewness / 6)) - 1) * 3 / skewness


_CLOSE = 1e-15
"""What changes a figure by a smaller share than this changes it no longer."""


@cache
def reach_of_t(df: float, level: float) -> float:
    """Return how many standard errors a t interval of this level reaches to either side.

    Found by Newton's method from the left. A tail of the distribution is convex there, so that no step goes too far.
    """
    tail = (1 - level) / 2
    log_peak = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    t = (0.5 - tail) * math.exp(-log_peak)  # the tail is at its steepest at 0
    while True:
        density = math.exp(log_peak - (df + 1) / 2 * math.log1p(t * t / df))
        step = (_upper_tail(t, df) - tail) / density
        t += step
        if step <= _CLOSE * t:
            return t


def _upper_tail(t: float, df: float) -> float:
    """Return the probability of more than `t`, which is positive: half of an incomplete beta function.

    Source: NIST Digital Library of Mathematical Functions, 8.17.22 (the continued fraction), and Press et al.,
    Numerical Recipes (2007), sections 6.4 and 5.2 (its evaluation by the method of Lentz, as modified by Thompson and
    Barnett).
    """
    a, b = df / 2, 0.5
    x = df / (df + t * t)
    c, d = 1.0, 1 / (1 - (a + b) / (a + 1) * x)
    fraction, m = d, 1
    while True:
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        c, d = 1 + even / c, 1 / (1 + even * d)
        fraction *= c * d
        c, d = 1 + odd / c, 1 / (1 + odd * d)
        fraction *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
        m += 1
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    return front * fraction / 2
