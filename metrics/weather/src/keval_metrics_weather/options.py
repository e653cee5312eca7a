"""Options: what the numbers among a metric's options may be, so that a slip in a config is an error, not a score."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import attrs
from attrs.validators import and_, ge, le

__all__ = ["check_rising", "not_negative", "share"]

T = TypeVar("T", int, float)


def not_negative(default: T) -> T:
    """Return a field for a number from 0 on: points, penalties (which are taken off), tolerances, counts."""
    return attrs.field(default=default, validator=ge(0))


def share(default: float) -> float:
    """Return a field for a number from 0 to 1: a score, or part of a whole."""
    return attrs.field(default=default, validator=and_(ge(0), le(1)))


def check_rising(options: object, *names: str, strictly: bool = True) -> None:
    """Check that options rise in the order of their names; unless `strictly`, neighbours may be equal.

    Raises ValueError: they do not; the message begins with the option that is out of order.
    """
    for lower, higher in pairwise(names):
        below, above = getattr(options, lower), getattr(options, higher)
        if above < below or (strictly and above == below):
            bound = "more than" if strictly else "at least"
            raise ValueError(f"'{higher}' must be {bound} '{lower}', which is {below:g}: {above:g}")
