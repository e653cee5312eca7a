"""Quantities: every number of a text that is a temperature, in degrees Celsius; of what, it does not say yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from keval_metrics_weather.reading.bare import NAMING
from keval_metrics_weather.reading.blocks import cells
from keval_metrics_weather.reading.figures import figures, value_of
from keval_metrics_weather.reading.words import Text

__all__ = ["Quantity", "in_celsius", "quantities"]

_HOTTEST_CELSIUS = 56.0
_CELL = re.compile(r"\s{0,8}\*{0,2}([-–−+]?)(\d{1,3}(?:[.,]\d{1,2})?)\*{0,2}\s{0,8}$")
_SAME_AGAIN = re.compile(
    r"\*{0,2},?[^.;\n\d]{0,24}[(/|=≈]\s?\*{0,2}(?:(?:about|around|approx(?:imately)?\.?|roughly)\s)?[~≈]?\*{0,2}$"
    r"|\*{0,2},? (?:or|that is|which is) (?:about )?$"
)
_CLOSE_AGAIN = 2.5


# Named tuples, as attrs records take twice as long to make, and an answer has many.
class Quantity(NamedTuple):
    """A temperature from `low` to `high` in °C (the same number unless a range), as `said` from `start` to `end`.

    `converted` says that it was stated in Fahrenheit, `vague` that only its tens are told ("low 20s").
    """

    low: float
    high: float
    start: int
    end: int
    said: str
    converted: bool = False
    vague: bool = False

    @property
    def is_range(self) -> bool:
        return self.low != self.high


@lru_cache(maxsize=64)
def quantities(text: Text, fahrenheit: bool = False) -> tuple[Quantity, ...]:
    """Return the temperatures a text states, in its order; one that is told in both scales is one.

    Degrees without a scale are Celsius, unless the text only ever names Fahrenheit, `fahrenheit` says that it was
    asked for, or the number is too hot to be Celsius on Earth.
    """
    readings = figures(text)
    if not readings:
        return tuple(_in_cells(text, ())) if "|" in text.said else ()
    scales = {reading.unit for reading in readings}
    named = "f" in scales or "°f" in text.plain or "fahrenheit" in text.said
    assumed = "f" if "c" not in scales and (fahrenheit or (named and "°c" not in text.plain)) else "c"
    found: list[Quantity] = []
    for reading in readings:
        unit = reading.unit or ("f" if max(reading.numbers) > _HOTTEST_CELSIUS else assumed)
        values = [in_celsius(n) for n in reading.numbers] if unit == "f" else reading.numbers
        quantity = Quantity(
            min(values),
            max(values),
            reading.start,
            reading.end,
            as_said(text, reading.start, reading.end),
            unit == "f",
            reading.vague,
        )
        if found and reading.start < found[-1].end:
            continue
        same = _same_again(text, found[-1], quantity) if found else None
        if same is not None:
            found[-1] = same
            if len(found) > 1 and (ranged := _range_of_both(text, found[-2], same)) is not None:
                found[-2:] = [ranged]
        else:
            found.append(quantity)
    if "|" in text.said:
        found = sorted([*found, *_in_cells(text, found)], key=attrgetter("start"))
    return tuple(found)


def _in_cells(text: Text, known: Sequence[Quantity]) -> Iterator[Quantity]:
    """Read the bare numbers in the cells of a table whose heads name a temperature: "| High (°C) |"."""
    starts = {quantity.start for quantity in known}
    for first, last, heads in cells(text):
        if not heads or not 0 < last - first < 4:
            continue
        matched = _CELL.match(text.plain, text.starts[first - 1] + 1, text.start_of(last))
        if matched is None or starts & {matched.start(1), matched.start(2)}:
            continue
        if NAMING.isdisjoint(word for a, b in heads for word in text.words[a:b]):
            continue
        value = value_of(matched[1] + matched[2])
        fahrenheit = any("°f" in text.plain[text.start_of(a - 1) : text.start_of(b)] for a, b in heads if a < b)
        said = text.original[matched.start(1) : matched.end(2)]
        value = in_celsius(value) if fahrenheit else value
        yield Quantity(value, value, matched.start(1), matched.end(2), said, fahrenheit)


def in_celsius(fahrenheit: float) -> float:
    """Return degrees Fahrenheit in Celsius."""
    return round((fahrenheit - 32) / 1.8, 2)


def as_said(text: Text, start: int, end: int) -> str:
    """Return a part of a text as it is quoted, without emphasis."""
    said = text.original[start:end]
    return " ".join(said.replace("*", "").split()) if "*" in said or not said.isascii() or "  " in said else said


def _range_of_both(text: Text, first: Quantity, last: Quantity) -> Quantity | None:
    """Join "between 9 °C (48 °F) and 18 °C (64 °F)", a range of which each end is told in two scales."""
    joint = text.plain[first.end : last.start].strip(" *)")
    before = text.plain[max(first.start - 12, 0) : first.start]
    if first.is_range or not (joint in ("to", "–", "-") or (joint == "and" and "between" in before)):
        return None
    low, high = sorted((first.low, last.low))
    said = f"{first.said} {joint} {last.said}"
    return last._replace(low=low, high=high, start=first.start, said=said)


def _same_again(text: Text, known: Quantity, quantity: Quantity) -> Quantity | None:
    """Join "48 °F (9 °C)": one temperature in two scales, as far as rounding goes."""
    if known.converted == quantity.converted or quantity.start - known.end > 40:
        return None
    if abs(known.low - quantity.low) > _CLOSE_AGAIN or abs(known.high - quantity.high) > _CLOSE_AGAIN:
        return None
    if not _SAME_AGAIN.match(text.plain, known.end, quantity.start):
        return None
    celsius = quantity if known.converted else known
    end = quantity.end
    if "(" in text.plain[known.end : quantity.start] and text.plain.startswith(")", end):
        end += 1
    return celsius._replace(start=known.start, end=end, said=as_said(text, known.start, end), vague=False)
