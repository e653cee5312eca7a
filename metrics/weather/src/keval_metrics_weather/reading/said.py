"""Said: a word or phrase that was read in a text, with where it stands there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from keval_metrics_weather.reading.words import Text

__all__ = ["Said", "said"]


class Said(str):
    """What a metric calls a piece of a text, which stands in `text` from offset `start` to `end`.

    It is a string, and equal to one: whoever does not ask where it stands reads it as such.
    """

    __slots__ = ("end", "start", "text")

    text: Text
    start: int
    end: int

    @classmethod
    def at(cls, text: Text, first: int, last: int, name: str) -> Said:
        """Return a name of the words from one place to another."""
        return cls.between(text, text.starts[first], text.end_of(last), name)

    @classmethod
    def from_offset(cls, text: Text, start: int, name: str) -> Said:
        """Return a name of the word that begins at an offset, or of the rest of the text if it has none from there."""
        place = bisect_left(text.starts, start)
        end = text.end_of(place) if place < len(text.starts) else len(text.plain)
        return cls.between(text, start, end, name)

    @classmethod
    def between(cls, text: Text, start: int, end: int, name: str) -> Said:
        """Return a name of what stands between two offsets."""
        found = cls(name)
        found.text, found.start, found.end = text, start, end
        return found


def said(text: Text, hits: Iterable[tuple[int, int, str]]) -> tuple[str, ...]:
    """Return the keywords of hits, each once and in their order, as they stand where the text says them first."""
    firsts: dict[str, tuple[int, int]] = {}
    for first, last, keyword in hits:
        if keyword not in firsts:
            firsts[keyword] = (first, last)
    return tuple([Said.at(text, first, last, keyword) for keyword, (first, last) in firsts.items()])
