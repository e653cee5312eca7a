"""The distribution of a mean whose units have random weights: its tails and quantiles, for many means at once.

Units have the weights of a flat Dirichlet distribution (the Bayesian bootstrap of Rubin, Annals of Statistics 9 (1981),
130-134), together with one more unit that nobody saw, which lies at either of two places with the same probability.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import attrs
import numpy as np
import numpy.typing as npt
from scipy import special

from keval_analysis.stats.units import FloatArray, IntArray, Units

# The trapezoid rule is exact to about 1e-7 with these.
_STEP, _NODES = 0.18, 40
_U = _STEP * np.arange(_NODES)
_SINH, _COSH = np.sinh(_U), np.cosh(_U)
_MOST_BENT = 0.6
_TOGETHER = 64
"""Factors that are multiplied before a logarithm is taken: one is slow, and the product stays a finite number."""
_AT_ONCE = 2_000_000
"""Complex numbers that are held in memory at a time."""
_MOST_UNITS, _EXTREME = 1_000, 200
"""Above so many units, neighbours are merged but for the lowest and the highest, so that many units take no longer."""
_ROUNDS = 60
_CLOSE = 1e-6


@attrs.frozen(eq=False)
class WeightedMeans:
    """The weighted means of rows of units. `unseen` has two values for each row, as means of a unit.

    A mean is the weighted sum of the units' sums over that of their sizes; the unit that nobody saw is as large as the
    others are on average.
    """

    units: Units
    unseen: FloatArray

    def __getitem__(self, rows: IntArray | slice) -> WeightedMeans:
        return WeightedMeans(self.units[rows], self.unseen[rows])

    def probability_below(self, at: FloatArray) -> FloatArray:
        """Return for each row the probability that the weighted mean is at most `at`; exact to about 1e-7."""
        found = np.empty(len(at))
        # In parts, as each takes an array of rows × nodes × units.
        rows = max(1, _AT_ONCE // (_NODES * min(max(self.units.sums.shape[1], 1), _TOGETHER)))
        for first in range(0, len(at), rows):
            some = slice(first, first + rows)
            found[some] = self[some]._below(at[some])
        return found

    def _below(self, at: FloatArray) -> FloatArray:
        """Return the same for a few rows.

        A weighted mean is at most c if the sum of standard exponential variables times (sum - c size) is at most 0.
        """
        units = self.units
        x = units.sums - at[:, None] * units.sizes
        unseen = (self.unseen - at[:, None]) * (units.sizes.sum(axis=1) / units.count)[:, None]
        return _probability_negative(x, unseen)

    def quantiles(self, share: FloatArray | float) -> FloatArray:
        """Return for each row the least value that the weighted mean does not exceed with its probability."""
        values = np.concatenate([self.units.values, self.unseen], axis=1)
        low, high = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
        found = np.where(share < 0.5, low, high)
        target = np.broadcast_to(special.ndtri(share), len(low))
        rows = np.flatnonzero(high > low)
        search = _Search.begin(self[rows], low[rows], high[rows], target[rows])
        for _ in range(_ROUNDS):
            if not len(rows):
                break
            scores = special.ndtri(self[rows].probability_below(search.place)) - target[rows]
            search = search.move(scores)
            found[rows] = search.place
            # Rows that are found leave the search, so that the last rounds compute few.
            rows, search = rows[~search.done], search[~search.done]
        return np.asarray(found)


def bounded_ends(
    rows: Iterable[tuple[Collection[float], Collection[int] | None]],
    scales: Sequence[tuple[float, float]],
    level: float,
) -> list[tuple[float, float]]:
    """Return the interval of each mean whose further unit lies at either end of its scale; rows are as for `Units`."""
    means = WeightedMeans(Units.of(rows), np.array(scales, np.float64))
    low, high = (means.quantiles((1 + sign * level) / 2).tolist() for sign in (-1, 1))
    return [*zip(low, high, strict=True)]


@attrs.frozen(eq=False)
class _Search:
    """Where the quantiles of rows are looked for: between `low` and `high`, next at `place`."""

    low: FloatArray
    high: FloatArray
    place: FloatArray
    slope: FloatArray
    sd: FloatArray
    before: FloatArray
    score_before: FloatArray

    @classmethod
    def begin(cls, means: WeightedMeans, low: FloatArray, high: FloatArray, target: FloatArray) -> _Search:
        """Begin where the quantile of a normal distribution is."""
        units = means.units
        size = units.sizes.sum(axis=1)
        centre = units.sums.sum(axis=1) / size
        far = (units.sums - centre[:, None] * units.sizes) * (units.count / size)[:, None]
        unseen = ((means.unseen - centre[:, None]) ** 2).mean(axis=1)
        sd = np.sqrt((far**2).sum(axis=1) + unseen) / (units.count + 1)
        # At an end the probability is 0 or 1, whose normal score is infinite.
        room = 1e-3 * (high - low)
        unknown = np.full(len(low), np.nan)
        return cls(low, high, np.clip(centre + target * sd, low + room, high - room), 1 / sd, sd, unknown, unknown)

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> _Search:
        return _Search(*(values[rows] for values in attrs.astuple(self, recurse=False)))

    def move(self, score: FloatArray) -> _Search:
        """Move by the secant method, as the normal score of the probability is nearly linear; else halve."""
        low, high = np.where(score < 0, self.place, self.low), np.where(score < 0, self.high, self.place)
        with np.errstate(divide="ignore", invalid="ignore"):
            # NaN at the first move, which goes by the slope of a normal distribution.
            secant = (score - self.score_before) / (self.place - self.before)
            slope = np.where(np.isfinite(secant) & (secant > 0), secant, self.slope)
            moved = self.place - score / slope
        place = np.where((moved > low) & (moved < high), moved, (low + high) / 2)
        place = np.where(score == 0, self.place, place)
        return _Search(low, high, place, slope, self.sd, self.place, score)

    @property
    def done(self) -> npt.NDArray[np.bool_]:
        """Whether the last move was too short to matter."""
        moved = np.abs(self.place - self.before)
        return np.minimum(moved, self.high - self.low) <= _CLOSE * self.sd


def _probability_negative(x: FloatArray, unseen: FloatArray) -> FloatArray:
    """Return for each row the probability that the sum of exponential variables times `x` is at most 0.

    One more variable is multiplied by either of the `unseen`. The inversion integral of the moment generating function
    is taken along a curve through its saddle point, which is bent as the path of steepest descent begins, by the
    trapezoid rule. Source: Daniels, Saddlepoint approximations in statistics, Annals of Mathematical Statistics 25
    (1954), 631-650, section 2 (the contour); Trefethen and Weideman, The exponentially convergent trapezoidal rule,
    SIAM Review 56 (2014), 385-458.
    """
    counts = np.ones(x.shape[1])
    if x.shape[1] > _MOST_UNITS:
        x, counts = _merged(x)
    # The smaller tail is integrated, also where the other one is asked for: so small probabilities keep their digits.
    side = np.where(x @ counts + unseen.mean(axis=1) >= 0, 1.0, -1.0)[:, None]
    every = np.concatenate([x, unseen], axis=1) * side
    lowest = every.min(axis=1)
    found = np.zeros(len(x))
    if (mixed := lowest < 0).any():
        # In units of the lowest one, poles are at 0 and from 1 on, and the saddle point is between them.
        found[mixed] = _lower_tail(
            every[mixed, :-2] / lowest[mixed, None], counts, every[mixed, -2:] / lowest[mixed, None]
        )
    return np.where(side[:, 0] > 0, found, 1 - found)


def _merged(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the values of rows with neighbours merged into their mean, and how many each one stands for."""
    n = x.shape[1]
    between = np.linspace(_EXTREME, n - _EXTREME, _MOST_UNITS - 2 * _EXTREME).astype(np.int64)
    first = np.unique(np.concatenate([np.arange(_EXTREME), between, np.arange(n - _EXTREME, n)]))
    counts = np.diff(first, append=n).astype(np.float64)
    return np.add.reduceat(np.sort(x, axis=1), first, axis=1) / counts, counts


def _lower_tail(z: FloatArray, counts: FloatArray, unseen: FloatArray) -> FloatArray:
    q = np.full(len(z), 0.5)
    for _ in range(40):
        first, second, _ = _derivatives(z, counts, unseen, q)
        moved = q - first / second
        # Newton's step may lead beyond a pole, at 0 or 1: then half the way to it is gone.
        moved = np.where(moved <= 0, q / 2, np.where(moved >= 1, (1 + q) / 2, moved))
        # Near the saddle point is enough, as the integral is the same along any contour between the poles.
        close = np.abs(moved - q) < 1e-2 * np.minimum(moved, 1 - moved)
        q = moved
        if close.all():
            break
    _, second, third = _derivatives(z, counts, unseen, q)
    width = 1 / np.sqrt(second)
    bend = np.clip(third * width**3 / 3, -_MOST_BENT, _MOST_BENT)[:, None]
    way = width[:, None] * (1j * _SINH + bend * (_COSH - 1))
    speed = _COSH - 1j * bend * _SINH
    # The contour is symmetric, so that one half of it is summed; the node in the middle belongs to both.
    speed[:, 0] /= 2
    beyond = 1 - q[:, None] * z
    steps = z / beyond
    value = speed / (1 + way / q[:, None])
    for count in np.unique(counts):
        alike = steps[:, counts == count]
        for start in range(0, alike.shape[1], _TOGETHER):
            product = np.multiply.reduce(1 - alike[:, start : start + _TOGETHER].T[:, :, None] * way, axis=0)
            value *= np.exp(-count * np.log(product))
    value *= (1 / (1 - (q[:, None] + way)[:, :, None] * unseen[:, None, :])).mean(axis=2)
    log_at_saddle = -np.log(beyond) @ counts - np.log(q)
    tail = np.exp(log_at_saddle) * width * _STEP / math.pi * value.real.sum(axis=1)
    return np.asarray(np.clip(tail, 0.0, 1.0))


def _derivatives(
    z: FloatArray, counts: FloatArray, unseen: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the first three derivatives at q of the logarithm of the integrand."""
    t = z / (1 - q[:, None] * z)
    power = t * t
    sums = t @ counts, power @ counts, (power * t) @ counts
    either = 1 / (1 - q[:, None] * unseen)
    total = either.sum(axis=1)
    u = unseen * either
    one, two, three = ((either * u**k).sum(axis=1) * f / total for k, f in ((1, 1), (2, 2), (3, 6)))
    return (
        sums[0] + one - 1 / q,
        sums[1] + two - one**2 + 1 / q**2,
        2 * sums[2] + three - 3 * two * one + 2 * one**3 - 2 / q**3,
    )
