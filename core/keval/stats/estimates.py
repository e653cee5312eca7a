"""Estimates of means and of paired differences, with the sample as the unit.

Repetitions of a sample are not independent observations. They are averaged first, so that repeating a question does
not make an error smaller.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

import attrs

__all__ = ["Estimate", "Means", "estimate"]


@attrs.frozen
class Estimate:
    """A mean over `n` samples and its standard error; `None` if there are too few samples."""

    n: int
    mean: float | None
    stderr: float | None


@attrs.define
class Means:
    """Running means of scores per sample; samples are numbered from 0."""

    _sums: array[float] = attrs.field(factory=lambda: array("d"))
    _counts: array[int] = attrs.field(factory=lambda: array("L"))

    def add(self, sample: int, value: float) -> None:
        sums, counts = self._sums, self._counts
        if (lacking := sample + 1 - len(sums)) > 0:
            sums.extend([0.0] * lacking)
            counts.extend([0] * lacking)
        sums[sample] += value
        counts[sample] += 1

    def by_sample(self) -> dict[int, float]:
        """Return the mean over each sample's repetitions."""
        return {
            sample: total / count
            for sample, (total, count) in enumerate(zip(self._sums, self._counts, strict=True))
            if count
        }


def estimate(values: Iterable[float]) -> Estimate:
    """Estimate a mean from one value per sample; the standard error is that of their mean.

    Source: Miller, Adding Error Bars to Evals, arXiv 2411.00640, equation 1 (the central limit theorem), over sample
    means.
    """
    kept = list(values)
    if not kept:
        return Estimate(0, None, None)
    mean = math.fsum(kept) / len(kept)
    if len(kept) < 2:
        return Estimate(1, mean, None)
    variance = math.fsum((value - mean) ** 2 for value in kept) / (len(kept) - 1)
    return Estimate(len(kept), mean, math.sqrt(variance / len(kept)))
