"""Limits: a measured quantity as it is, or held to the most that it may be."""

from __future__ import annotations

import math
from typing import Any

from keval import Scale, Score

__all__ = ["measured", "scale_of"]


def scale_of(unit: str, limit: float | None) -> Scale:
    """Return the scale of a quantity of which less is better; with a limit, 0 to 1."""
    return Scale() if limit is not None else Scale(0.0, math.inf, better="lower", unit=unit)


def measured(value: float, unit: str, limit: float | None, **details: Any) -> Score:
    """Return the quantity as a score; with a limit, 1 within it and 0 beyond."""
    if limit is None:
        return Score(float(value), _shown(value, unit), details=details)
    within = value <= limit
    reason = f"{_shown(value, unit)}: {'within' if within else 'beyond'} the limit of {_shown(limit, unit)}"
    return Score(1.0 if within else 0.0, reason, details={**details, "limit": limit})


def _shown(value: int | float, unit: str) -> str:
    number = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f"{number} {unit}"
