"""Tables: the cells of a text's tables, with the heads of their rows and columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

from keval_metrics_weather.reading.words import Text

Span: TypeAlias = tuple[int, int]
"""The places of the first word of something and of the first word after it."""


@lru_cache(maxsize=64)
def cells(text: Text) -> tuple[tuple[int, int, tuple[Span, ...]], ...]:
    """Return the cells of a text's tables, each with the heads of its row and of its column."""
    return tuple(_cells(text)) if "|" in text.said else ()


def _cells(text: Text) -> Iterator[tuple[int, int, tuple[Span, ...]]]:
    heads: list[Span] | None = None
    first = 0
    for last in (*text.index.get("\n", ()), len(text.words)):
        if text.words[first:last][:1] != ["|"]:
            heads = None
        else:
            bars = text.index["|"]
            inner = bars[bisect_left(bars, first) : bisect_left(bars, last)]
            row = [(a + 1, b) for a, b in pairwise(inner if inner[-1] == last - 1 else [*inner, last])]
            if heads is None or any(a < b for a, b in row):  # else it is the line below the heads
                for number, (begin, end) in enumerate(row):
                    yield begin, end, (*row[: min(number, 1)], *(heads or ())[number : number + 1])
            heads = heads or row  # the first row of a table names its columns
        first = last + 1


def heads_of(text: Text, place: int) -> tuple[Span, ...]:
    """Return the heads of the row and of the column that a word stands in, if it is in a table."""
    known = cells(text)
    at = bisect_right(known, place, key=itemgetter(0)) - 1
    return known[at][2] if at >= 0 and place < known[at][1] else ()
