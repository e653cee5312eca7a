"""Adjusting p-values for how many were looked at."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["holm"]


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted so that the chance of any false positive among all of them stays below the level.

    An unknown p-value stays unknown and does not count. Source: Holm, A simple sequentially rejective multiple test
    procedure, Scandinavian Journal of Statistics 6 (1979), 65-70.
    """
    adjusted: list[float | None] = [None] * len(p)
    known = sorted((value, index) for index, value in enumerate(p) if value is not None)
    largest = 0.0
    for rank, (value, index) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted
