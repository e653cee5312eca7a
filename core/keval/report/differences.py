"""What a difference amounts to: its share of the scale, and whether it is the same for every question."""

from __future__ import annotations

import math

from keval.effects import Effect
from keval.scores import Scale

__all__ = ["better_share", "is_flat"]


def better_share(difference: float, scale: Scale) -> float | None:
    """Return a difference as a share of its scale, positive for the better; `None` for a scale without an end."""
    if math.isinf(scale.high):
        return None
    share = difference / (scale.high - scale.low)
    return -share if scale.better == "lower" else share


def is_flat(effect: Effect) -> bool:
    """Return whether nothing differs for any question."""
    return effect.difference == 0 and not effect.stderr
