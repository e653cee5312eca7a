"""Bounds of an effect when scores were lost."""

from __future__ import annotations

import math

import attrs
import numpy as np

from keval.stats.moments import FloatArray, IntArray

__all__ = ["Observed", "lost_share", "manski_bounds"]


@attrs.frozen
class Observed:
    """The scores of one arm by sample: their sum, how many there are, and how many more there should have been."""

    sums: FloatArray
    scored: IntArray
    lost: IntArray


def lost_share(*arms: Observed) -> float:
    """Return which share of the scores that there should have been were lost."""
    lost = sum(int(arm.lost.sum()) for arm in arms)
    return lost / max(1, lost + sum(int(arm.scored.sum()) for arm in arms))


def manski_bounds(arm: Observed, against: Observed, *, low: float, high: float) -> tuple[float, float] | None:
    """Return the mean paired difference if every lost score had been the worst or the best for it.

    Samples are aligned. Those count that should have had scores in both arms, each with the mean over its repetitions.
    `None` if there is no such sample, or the scale from `low` to `high` has no end. Source: Manski, Nonparametric
    Bounds on Treatment Effects, American Economic Review 80 (1990), 319-323.
    """
    both = (arm.scored + arm.lost > 0) & (against.scored + against.lost > 0)
    if not np.any(both) or not math.isfinite(high - low):
        return None

    def mean(side: Observed, lost: float) -> float:
        totals = side.sums[both] + lost * side.lost[both]
        return float(np.mean(totals / (side.scored[both] + side.lost[both])))

    return mean(arm, low) - mean(against, high), mean(arm, high) - mean(against, low)
