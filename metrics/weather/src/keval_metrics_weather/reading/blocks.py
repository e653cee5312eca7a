"""Blocks: what a text is made of, as its reader sees it: headings, paragraphs, bullets and the rows of tables."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from keval_metrics_weather.reading.words import Text

Span: TypeAlias = tuple[int, int]
"""The places of the first word of something and of the first word after it."""

_LINE = re.compile(
    r"^(?P<indent>[ \t>]{0,24})"
    r"(?:(?P<heading>#{1,6}(?= ))|(?P<bullet>[-*+•●–](?=\s))|(?P<number>\d{1,3}[.)](?=\s))|(?P<row>\|))?",
    re.MULTILINE,
)
_BOLD_LINE = re.compile(r"(?:\W{0,8})(?:\*\*|__)[^\n*_]{1,80}:?(?:\*\*|__):?\s{0,4}$", re.MULTILINE)
_MOST_WORDS_IN_A_KEY = 7


class Block(NamedTuple):
    """A line of a text: the words from place `first` up to `last`, and what it is.

    `key` is what stands before its colon ("**High:** 21 °C"). The cells of a `row` come with the `heads` of their
    columns; both are empty otherwise, and the heads where a table has none.
    """

    kind: Literal["heading", "paragraph", "bullet", "row"]
    first: int
    last: int
    key: Span | None = None
    cells: Sequence[Span] = ()
    heads: Sequence[Span] = ()


@lru_cache(maxsize=64)
def blocks(text: Text) -> tuple[Block, ...]:
    """Return the lines of a text that say something, in order."""
    if "\n" not in text.said and "|" not in text.said:
        return (_line(text, 0, len(text.words), None),) if text.words else ()
    return tuple(_blocks(text))


def _blocks(text: Text) -> Iterator[Block]:
    ends = [*text.index.get("\n", ()), len(text.words)]
    first = 0
    heads: Sequence[Span] | None = None
    pending: Block | None = None
    for last in ends:
        begin = text.starts[first - 1] + 1 if first else 0
        if last > first:
            block = _line(text, first, last, _LINE.match(text.plain, begin))
            if block.kind != "row":
                heads = None
            elif heads is None:
                heads = block.cells  # the first row of a table names its columns
            elif any(a < b for a, b in block.cells):
                block = block._replace(heads=heads)
            else:
                block = block._replace(cells=())
            if pending is not None:
                yield pending
            pending = block
        elif heads is not None and last == first:
            heads = None
        first = last + 1
    if pending is not None:
        yield pending


def _line(text: Text, first: int, last: int, found: re.Match[str] | None) -> Block:
    mark = found.lastgroup if found is not None else None
    if mark == "row":
        return Block("row", first, last, None, _cells(text, first, last))
    key = _key(text, first, last)
    if mark == "heading" or (found is not None and _BOLD_LINE.match(text.plain, found.start())):
        return Block("heading", first, last, key)
    return Block("bullet" if mark in ("bullet", "number") else "paragraph", first, last, key)


def _key(text: Text, first: int, last: int) -> Span | None:
    for place in range(first, min(first + _MOST_WORDS_IN_A_KEY, last)):
        if text.words[place] == ":":
            after = text.starts[place] + 1
            if not text.plain[after : after + 1].isdigit():
                return (first, place) if place > first else None
        elif text.words[place] in (".", "!", "?", "|", ","):
            return None
    return None


def _cells(text: Text, first: int, last: int) -> Sequence[Span]:
    """Return the cells of a row, without the bars at both ends."""
    bars = text.index["|"]
    inner = bars[bisect_left(bars, first) : bisect_left(bars, last)]
    edges = [*inner, last] if inner and inner[-1] != last - 1 else inner
    return [(a + 1, b) for a, b in pairwise(edges)]


@lru_cache(maxsize=64)
def cells(text: Text) -> tuple[tuple[int, int, tuple[Span, ...]], ...]:
    """Return the cells of a text's tables, each with the heads of its row and of its column."""
    found = []
    for block in blocks(text):
        for number, (first, last) in enumerate(block.cells):
            heads = [block.cells[0]] if number else []
            if number < len(block.heads) and block.heads is not block.cells:
                heads.append(block.heads[number])
            found.append((first, last, tuple(heads)))
    return tuple(found)


def heads_of(text: Text, place: int) -> tuple[Span, ...]:
    """Return the heads of the row and of the column that a word stands in, if it is in a table."""
    if "|" not in text.said:
        return ()
    known = cells(text)
    at = bisect_right(known, place, key=itemgetter(0)) - 1
    return known[at][2] if at >= 0 and place < known[at][1] else ()
