"""Marking: an answer cut into pieces, so that a page can show what a metric read in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs

from keval.plugin import Mark

__all__ = ["Piece", "pieces_of", "spans_of"]

_WORST_FIRST = ("bad", "good", "neutral")


@attrs.frozen
class Piece:
    """A piece of an answer, and the marks that are on all of it."""

    text: str
    marks: Sequence[Mark] = ()

    @property
    def kind(self) -> str:
        """Of what kind its marks are; of several, the worst."""
        return min((mark.kind for mark in self.marks), key=_WORST_FIRST.index, default="")

    @property
    def told(self) -> str:
        """As what it was read."""
        return "; ".join(dict.fromkeys(mark.label for mark in self.marks))


def pieces_of(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """Cut a text where marks begin and end, which may overlap. The marks are inside the text, by their beginnings."""
    borders = sorted({0, len(text), *(mark.start for mark in marks), *(mark.end for mark in marks)})
    pieces: list[Piece] = []
    waiting, open_ = list(reversed(marks)), list[Mark]()
    for begin, end in pairwise(borders):
        while waiting and waiting[-1].start <= begin:
            open_.append(waiting.pop())
        open_ = [mark for mark in open_ if mark.end > begin]
        pieces.append(Piece(text[begin:end], tuple(open_)))
    return pieces


def spans_of(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """Return what was marked of a text, in its order: each piece once, with all marks from its beginning to its end."""
    found: dict[tuple[int, int], list[Mark]] = {}
    for mark in marks:
        found.setdefault((mark.start, mark.end), []).append(mark)
    return [Piece(text[start:end], tuple(each)) for (start, end), each in found.items()]
