"""A small plot of intervals in text: one axis for all rows, and a row's interval as `├──●──┤`."""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

__all__ = ["Axis"]

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@attrs.frozen
class Axis:
    """The part of the numbers that a plot of `width` characters shows, which includes 0.

    With `percent` the numbers are shares of a scale.
    """

    low: float
    high: float
    width: int
    percent: bool = False

    @classmethod
    def over(cls, values: Iterable[float], width: int, *, percent: bool = False) -> Axis:
        """Return an axis over all the values and 0, with ends that are round numbers."""
        known = [0.0, *values]
        low, high = min(known), max(known)
        step = _step(max(high, -low) or 1.0)
        return cls(
            math.floor(low / step + 1e-9) * step,
            math.ceil(high / step - 1e-9) * step or (0.0 if low else step),
            width,
            percent,
        )

    def column(self, value: float) -> int:
        """Return the character, from 0, that a value is at; what is beyond an end is at the end."""
        place = (value - self.low) / (self.high - self.low) * (self.width - 1)
        return min(max(round(place), 0), self.width - 1)

    def header(self) -> str:
        """Return the labels of the ends and of 0, each over its character as far as there is room."""
        line = [" "] * self.width
        zero = self.column(0.0)
        for value, place in ((self.low, 0), (self.high, self.width - 1), (0.0, zero)):
            label = self._label(value)
            start = min(max(place - len(label) // 2, 0), self.width - len(label))
            around = line[max(start - 1, 0) : start + len(label) + 1]
            if all(character == " " for character in around):
                line[start : start + len(label)] = label
        return "".join(line).rstrip()

    def bar(self, low: float | None, value: float, high: float | None) -> str:
        """Return a row: `│` at 0, `●` at the value and its interval; `┼` where the interval includes 0.

        An interval that goes on beyond the axis ends in `<` or `>`.
        """
        line = [" "] * self.width
        zero = self.column(0.0)
        line[zero] = "│"
        if low is not None and high is not None:
            first, last = self.column(low), self.column(high)
            line[first : last + 1] = ["─"] * (last + 1 - first)
            if low < 0.0 < high:
                line[zero] = "┼"
            line[first] = "├" if low >= self.low else "<"
            line[last] = "┤" if high <= self.high else ">"
        line[self.column(value)] = "●"
        return "".join(line)

    def _label(self, value: float) -> str:
        if not value:
            return "0"
        if self.percent:
            return f"{value:+.0%}"
        return f"{value:+.10g}"


def _step(largest: float) -> float:
    """Return a round step, of which about five to ten reach to the largest value."""
    unit = 10.0 ** math.floor(math.log10(largest) - 1)
    return next((unit * step for step in _STEPS if largest / (unit * step) <= 10), unit * 10)
