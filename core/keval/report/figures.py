"""Figures that may be unknown, as pages and Markdown write them, and what a difference amounts to."""

from __future__ import annotations

import math

from keval.effects import Effect
from keval.report import cells
from keval.scores import Scale

__all__ = ["better_share", "interval", "is_flat", "number", "signed"]


def number(value: float | None) -> str:
    """Return a number with two decimals, or none from 100 on; `–` for an unknown one."""
    if value is None:
        return "–"
    return "∞" if math.isinf(value) else cells.number(value)


def signed(value: float | None) -> str:
    """Return a difference with its sign; `–` for an unknown one."""
    return "–" if value is None else cells.signed(value)


def interval(low: float | None, high: float | None, *, signs: bool = False) -> str:
    """Return an interval as `0.10 to 0.30`; an empty text if an end is unknown."""
    if low is None or high is None:
        return ""
    told = signed if signs else number
    return f"{told(low)} to {told(high)}"


def better_share(difference: float, scale: Scale) -> float | None:
    """Return a difference as a share of its scale, positive for the better; `None` for a scale without an end."""
    if math.isinf(scale.high):
        return None
    share = difference / (scale.high - scale.low)
    return -share if scale.better == "lower" else share


def is_flat(effect: Effect) -> bool:
    """Return whether nothing differs for any question."""
    return effect.difference == 0 and not effect.stderr
