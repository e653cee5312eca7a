"""How much one arm differs from another on the same samples: one rule, whose interval and p cannot disagree.

The rule needs no assumption about the shape of differences but one: no question that nobody asked changes by more than
those that were asked do.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

import attrs
import numpy as np

from keval_analysis.stats.looking import Looking
from keval_analysis.stats.units import FloatArray, IntArray, Moments, Units, evened, moments
from keval_analysis.stats.weighted_means import WeightedMeans

T = TypeVar("T")
_AT_ONCE = 50_000
"""Values that are worked on at a time; they take a hundred bytes each."""


@attrs.frozen(eq=False)
class Differences:
    """Paired differences, one per sample, of scores on a scale as wide as `span`, which may be infinite.

    Samples with the same number in `clusters` are not independent; `None` if all are. `size` is how large the scores
    are: differences that are alike but for the rounding of such numbers are equal.
    """

    values: Collection[float]
    clusters: Collection[int] | None = None
    span: float = math.inf
    size: float = attrs.field()

    @size.default
    def _largest(self) -> float:
        return self.span if math.isfinite(self.span) else float(np.max(np.abs(np.asarray(self.values)), initial=0.0))


@attrs.frozen
class PairedEffect:
    """A mean paired difference over `n` samples; what too few samples or clusters leave unknown is `None`.

    `low` and `high` are the interval, and `p` is that of no effect, two-sided: it is below 0.05 where the 95 % interval
    excludes 0. `worst_case` is the interval if nothing but the scale bounds what a question that nobody asked may
    change by. `d` is Cohen's d for paired data: the difference over the standard deviation of the differences (Cohen
    1988, section 2.3.5, d_z).
    """

    n: int
    difference: float | None
    stderr: float | None = None
    df: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    worst_case: tuple[float, float] | None = None
    d: float | None = None


@attrs.frozen(eq=False)
class Rule:
    """The rule on rows of independent units, a row for each effect; `span` is how wide the scale of each is.

    `skew_t` uses how differences scatter. The weighted mean accounts for what few differences do not show: it gives the
    units random weights, and as much weight to one more unit, which changes by as much as the units that change do on
    average, for the better or for the worse. Interval and p are the more careful ones of both. Of the 0/1 scores of
    single trials, the p of the weighted mean is McNemar's exact mid-p. NaN for a row of fewer than two units, and for
    one in which nothing changes on a scale without an end. With `looking`, interval and p are those that hold at every
    look.
    """

    units: Units
    span: FloatArray
    moments: Moments
    looking: Looking | None = None

    @classmethod
    def of(cls, units: Units, span: FloatArray, looking: Looking | None = None) -> Rule:
        """Return the rule on these units."""
        return cls(units, span, moments(units), looking)

    @classmethod
    def on(cls, rows: Sequence[Differences], looking: Looking | None = None) -> Rule:
        """Return the rule on differences, a row for each."""
        units = Units.of((evened(row.values, row.size), row.clusters) for row in rows)
        return cls.of(units, np.array([row.span for row in rows]), looking)

    def p(self, center: FloatArray | float = 0.0) -> FloatArray:
        """Return the two-sided p-value of each mean being `center`, which may be another one for each."""
        below, center = np.full(len(self.span), np.nan), np.broadcast_to(center, len(self.span))
        known = self._known
        below[known] = WeightedMeans(self.units, self._unseen)[known].probability_below(center[known])
        # `fmax` takes the other one where there is no weighted mean.
        both = np.fmax(self.moments.skew_t_p(center), 2 * np.minimum(below, 1 - below))
        both = np.where(np.isnan(self.moments.stderr), np.nan, both)
        return both if self.looking is None else self.looking.p(both, self.units.count)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper end of each interval, which lies within the scale's span around 0."""
        levels = self._levels(level)
        low, high = self.moments.skew_t(levels)
        known = self._known[~np.isnan(levels[self._known])]
        least, most = self._weighted(known, levels, self._unseen, self._unseen)
        # NaN where there is no weighted mean; the outer end of a number and NaN is NaN.
        ends = np.minimum(low, least), np.maximum(high, most)
        return np.clip(ends[0], -self.span, self.span), np.clip(ends[1], -self.span, self.span)

    def worst_case(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of each interval if what nobody asked may change by the whole scale; NaN without an end.

        Source: Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
        variable, Mathematical Methods of Statistics 14 (2005), 451-467; Learned-Miller and Thomas, A new confidence
        interval for the mean of a bounded random variable, arXiv 1905.06208.
        """
        levels = self._levels(level)
        known = np.flatnonzero(np.isfinite(self.span) & ~np.isnan(self.moments.stderr) & ~np.isnan(levels))
        beyond = self.span[:, None] * np.ones(2)
        return self._weighted(known, levels, -beyond, beyond)

    def _weighted(
        self, known: IntArray, levels: FloatArray, below: FloatArray, above: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the weighted means of `known` rows, for what nobody saw `below` and `above`; else NaN."""
        ends = np.full((2, len(self.span)), np.nan)
        # Both ends are looked for at once: with few rows, a search takes no longer for twice as many.
        both, sign = np.concatenate([known, known]), np.repeat([-1, 1], len(known))
        means = WeightedMeans(self.units[both], np.concatenate([below[known], above[known]]))
        ends[:, known] = means.quantiles((1 + sign * levels[both]) / 2).reshape(2, -1)
        return ends[0], ends[1]

    def _levels(self, level: float) -> FloatArray:
        """Return the level of each row's ordinary interval."""
        if self.looking is None:
            return np.full(len(self.span), level)
        return self.looking.ordinary_level(level, self.units.count)

    @property
    def _change(self) -> FloatArray:
        """How much a unit that nobody saw changes by: as those that change on average, or the whole scale."""
        usual = self.units.usual_size()
        return np.where(np.isnan(usual), self.span, usual)

    @property
    def _unseen(self) -> FloatArray:
        return np.asarray(self._change[:, None] * np.array([-1.0, 1.0]))

    @property
    def _known(self) -> IntArray:
        return np.flatnonzero(np.isfinite(self._change) & ~np.isnan(self.moments.stderr))


def paired_effects(rows: Sequence[Differences], looking: Looking | None = None) -> list[PairedEffect]:
    """Estimate the mean of each row of paired differences, by intervals that hold for a way of looking.

    Pairing removes the variance that comes from how hard each question is. Source: Miller, Adding Error Bars to Evals,
    arXiv 2411.00640, section 4.2 (paired differences).
    """
    most = max((len(row.values) for row in rows), default=0)
    return [effect for some in together(rows, most) for effect in _paired_effects(some, looking)]


def together(rows: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """Yield rows of at most so many values each in parts that take a bounded memory."""
    step = max(1, _AT_ONCE // max(1, most))
    return (rows[first : first + step] for first in range(0, len(rows), step))


def _paired_effects(rows: Sequence[Differences], looking: Looking | None) -> list[PairedEffect]:
    rule = Rule.on(rows, looking)
    found = rule.moments
    low, high = rule.interval(0.95)
    worst, best = rule.worst_case(0.95)
    # Without the assumption, an interval is never narrower than with it.
    worst, best = np.minimum(worst, low), np.maximum(best, high)
    columns = zip(rows, found.mean, found.stderr, found.df, low, high, rule.p(), worst, best, strict=True)
    effects = []
    for row, *figures in columns:
        mean, stderr, df, lower, upper, p, least, most = (None if math.isnan(x) else float(x) for x in figures)
        sd = float(np.std(np.asarray(row.values), ddof=1)) if stderr else 0.0
        d = mean / sd if sd and mean is not None else None
        worst_case = None if least is None or most is None else (least, most)
        effects.append(PairedEffect(len(row.values), mean, stderr, df, lower, upper, p, worst_case, d))
    return effects


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted so that the chance of any false positive among all of them stays below the level.

    An unknown p-value stays unknown and does not count. Source: Holm, A simple sequentially rejective multiple test
    procedure, Scandinavian Journal of Statistics 6 (1979), 65-70.
    """
    adjusted: list[float | None] = [None] * len(p)
    known = sorted((value, index) for index, value in enumerate(p) if value is not None)
    largest = 0.0
    for rank, (value, index) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted
