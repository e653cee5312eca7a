"""Quantiles of what was measured."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["quantile"]


def quantile(values: Collection[float], share: float) -> float | None:
    """Return the value that this share of the values lies below, between the two nearest; `None` without values.

    Source: Hyndman and Fan 1996, Sample Quantiles in Statistical Packages, definition 7, which NumPy uses, too.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
