"""The independent units of means, samples or clusters of them, and the moments of the means: many means at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

_ROUNDING = 1e-12
"""Values that differ by less than this share of the largest are equal: averages of equal scores differ by rounding."""


def evened(values: Collection[float], size: float) -> FloatArray:
    """Return values of which those are equal that differ by the rounding of scores as large as `size`, also from 0."""
    found = np.array(values, np.float64)
    order = np.argsort(found, kind="stable")
    ordered = found[order]
    begins = np.diff(ordered, prepend=-np.inf) > _ROUNDING * size
    if not begins.all():
        found[order] = ordered[begins][np.cumsum(begins) - 1]
    return np.where(np.abs(found) <= _ROUNDING * size, 0.0, found)


@attrs.frozen(eq=False)
class Units:
    """Rows of units, a row for each mean: the sum of the values of each unit, and how many values it has.

    A row with fewer units than others ends in units without values, which change nothing.
    """

    sums: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, rows: Iterable[tuple[Collection[float], Collection[int] | None]]) -> Units:
        """Return a row for each of the values. Values with the same number of a cluster make one unit."""
        units = [_units(values, clusters) for values, clusters in rows]
        shape = len(units), max((len(sums) for sums, _ in units), default=0)
        found = cls(np.zeros(shape), np.zeros(shape))
        for row, (sums, sizes) in enumerate(units):
            found.sums[row, : len(sums)], found.sizes[row, : len(sums)] = sums, sizes
        return found

    def __getitem__(self, rows: IntArray | slice) -> Units:
        return Units(self.sums[rows], self.sizes[rows])

    @property
    def count(self) -> IntArray:
        """How many units each row has."""
        return np.asarray((self.sizes > 0).sum(axis=1), np.int64)

    @property
    def values(self) -> FloatArray:
        """The mean of each unit; NaN for one without values."""
        return np.where(self.sizes > 0, self.sums, np.nan) / np.maximum(self.sizes, 1.0)

    def usual_size(self) -> FloatArray:
        """Return the mean without its sign of those units of each row that are not 0; NaN if all are."""
        size = np.abs(self.sums) / np.maximum(self.sizes, 1.0)
        # 0 / 0 is the NaN of a row in which all are 0.
        with np.errstate(invalid="ignore"):
            return np.asarray(size.sum(axis=1) / (size > 0).sum(axis=1))


def _units(given: Collection[float], clusters: Collection[int] | None) -> tuple[FloatArray, FloatArray]:
    """Return the sum and the number of the values of each unit."""
    values = np.asarray(given, np.float64)
    largest = np.max(np.abs(values), initial=0.0)
    if len(values) and np.ptp(values) <= _ROUNDING * largest:
        values = np.full(len(values), values[0])
    if clusters is None:
        return np.where(np.abs(values) <= _ROUNDING * largest, 0.0, values), np.ones(len(values))
    _, numbers = np.unique(np.asarray(clusters), return_inverse=True)
    sums, sizes = np.bincount(numbers, values), np.bincount(numbers)
    return np.where(np.abs(sums) <= _ROUNDING * largest * sizes, 0.0, sums), sizes.astype(np.float64)


@attrs.frozen(eq=False)
class Moments:
    """The means of rows of units, their standard errors, degrees of freedom, and the skewness of their distributions.

    The mean is NaN for a row without units; the others are for one with fewer than two.
    """

    mean: FloatArray
    stderr: FloatArray
    df: FloatArray
    skewness: FloatArray

    def skew_t(self, level: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Return the t interval, extended to where Hall's interval ends on the side to which that one is shifted.

        Hall's alone is too narrow for symmetric data with rare large values, whose skewness is seen where there is
        none. Source: Hall, On the removal of skewness by transformation, JRSS B 54 (1992), 221-228, the cubic
        transformation.
        """
        reach = t_quantile(self.df, level)
        below = np.fmax(reach, _inverse_hall(reach, self.skewness))
        above = np.fmax(reach, -_inverse_hall(-reach, self.skewness))
        return self.mean - below * self.stderr, self.mean + above * self.stderr

    def skew_t_p(self, center: FloatArray) -> FloatArray:
        """Return the two-sided p-value of each mean being `center`, which agrees with the interval `skew_t`.

        Where nothing scatters, it is 0, or 1 if the mean is `center`.
        """
        off = self.mean - center
        with np.errstate(divide="ignore", invalid="ignore"):
            # Where nothing scatters, 0 / 0 is no difference.
            t = np.where(off == 0, 0.0, off / self.stderr)
            plain, corrected = (2 * special.stdtr(self.df, -np.abs(x)) for x in (t, hall(t, self.skewness)))
        return np.where(np.isinf(t), 0.0, np.maximum(plain, np.nan_to_num(corrected)))


def moments(units: Units) -> Moments:
    """Return the moments of the mean of each row.

    The standard error of clustered samples is CR2, and `df` are those of Bell and McCaffrey (2002), Bias reduction in
    standard errors for linear regression with multi-stage samples, for a regression on a constant. Without clusters
    these are the usual s/√n with n - 1 degrees of freedom; with clusters of one size, clusters - 1.
    """
    sums, sizes, count = units.sums, units.sizes, units.count
    with np.errstate(divide="ignore", invalid="ignore"):
        n = sizes.sum(axis=1)
        mean = sums.sum(axis=1) / n
        residuals = sums - mean[:, None] * sizes
        # Clusters with one mean would otherwise be sure to a rounding error.
        residuals[np.abs(residuals) <= _ROUNDING * np.abs(sums).sum(axis=1)[:, None]] = 0.0
        alike = ~residuals.any(axis=1)
        mean = np.where(alike & (count > 0), units.values[:, :1].sum(axis=1), mean)
        shares = sizes / n[:, None]
        stderr = np.sqrt((residuals**2 / (1 - shares)).sum(axis=1)) / n
        squares = shares**2 / (1 - shares)
        df = 1 / ((shares**2).sum(axis=1) + squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1))
        # Divided before it is cubed: the cube of a small or large error is no number.
        skewness = ((residuals / n[:, None] / stderr[:, None]) ** 3).sum(axis=1)
    few = count < 2
    stderr, df, skewness = (np.where(few, np.nan, found) for found in (stderr, df, np.where(alike, 0.0, skewness)))
    return Moments(mean, stderr, df, skewness)


def t_quantile(df: FloatArray | float, level: FloatArray | float) -> FloatArray:
    """Return how many standard errors a t interval reaches to either side."""
    return np.asarray(special.stdtrit(df, (1 + level) / 2))


def hall(studentized: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return a studentized mean with the skewness of its distribution removed. Source: Hall (1992), as `skew_t`."""
    return np.asarray(studentized + skewness * (studentized**2 / 3 + 1 / 6) + skewness**2 * studentized**3 / 27)


def _inverse_hall(corrected: FloatArray, skewness: FloatArray) -> FloatArray:
    # The inverse divides by the skewness; without any, the transformation changes nothing.
    skewed = np.abs(skewness) >= 1e-6
    by = np.where(skewed, skewness, 1.0)
    return np.where(skewed, (np.cbrt(1 + by * (corrected - by / 6)) - 1) * 3 / by, corrected)
