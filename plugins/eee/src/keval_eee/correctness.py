"""Correct or not: the format wants a verdict on every instance, and a score is drawn to either side of a threshold."""

from __future__ import annotations

import math

from keval import Scale

__all__ = ["explain_threshold", "is_correct"]


def is_correct(scale: Scale, value: float, threshold: float) -> bool:
    """Whether a value has come far enough from the worst end of its scale to the best.

    `threshold` is the share of that way. On a scale without an end there is no such share, so that no value shows an
    answer to be correct.
    """
    low, high = scale.low, scale.high
    if math.isinf(high):
        return False
    share = (value - low) / (high - low)
    # Three fifths of a scale from 0 to 5 may come out a hair below 0.6.
    return bool((1 - share if scale.better == "lower" else share) >= threshold - 1e-9)


def explain_threshold(scale: Scale, threshold: float) -> str:
    """Say in a sentence what `is_correct` means on this scale."""
    low, high = scale.low, scale.high
    if math.isinf(high):
        return "always false: the scale has no end, so no threshold can be a share of it"
    if scale.better == "lower":
        return f"true where the score is at most {high - threshold * (high - low):g}"
    return f"true where the score is at least {low + threshold * (high - low):g}"
