"""Estimating an arm's mean, with the sample as the unit.

Repetitions of a sample are no independent evidence: they are averaged first, so that repeating them cannot narrow
the error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

__all__ = ["Estimate", "Means", "estimate"]


@attrs.frozen
class Estimate:
    """A mean over `n` samples and its standard error; both `None` where there is too little to say."""

    n: int
    mean: float | None
    stderr: float | None


@attrs.define
class Means:
    """Running means of scores per sample."""

    _sums: dict[str, tuple[float, int]] = attrs.field(factory=dict)

    def add(self, sample: str, value: float) -> None:
        total, count = self._sums.get(sample, (0.0, 0))
        self._sums[sample] = (total + value, count + 1)

    def by_sample(self) -> dict[str, float]:
        """The mean over each sample's repetitions."""
        return {sample: total / count for sample, (total, count) in self._sums.items()}


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
