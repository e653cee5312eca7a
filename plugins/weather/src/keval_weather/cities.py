"""Finding the cities that a text names: by their capital letters, and by names already known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs

from keval_weather.names import fold

__all__ = ["CityFinder", "Mention"]

_WORD = re.compile(r"[^\W\d_]+(?:[’'.-][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"[’']s$")

_PLACING = {"in", "at", "near", "around", "visiting", "within", "for", "about", "to"}
_HINTING = {"from", "of", "and", "or", "than", "with", "versus", "mean", "meant"}
_DECLINING = {("instead", "of"), ("rather", "than")}
_NOT_DECLINING = {"or", "why"}
_TOPICS = {"weather", "forecast", "temperature", "temperatures", "climate"}
# Small words inside a name, as in Rio de Janeiro or Stratford upon Avon.
_JOINING = {"am", "an", "da", "das", "de", "del", "della", "der", "di", "do", "dos", "du", "e", "el", "la", "las"} | {
    "le",
    "los",
    "of",
    "on",
    "sur",
    "und",
    "upon",
    "y",
}
_ABBREVIATED = {"st", "mt", "ft"}
# Capitalised, or last in a question typed in capitals, and no city.
_NO_CITY = {
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
    *("spring", "summer", "autumn", "fall", "winter", "christmas", "easter"),
    *("today", "tomorrow", "tonight", "now", "celsius", "fahrenheit", "the"),
    *("i", "i'm", "i’m", "i'd", "i’d", "i'll", "i’ll", "i've", "i’ve"),
}
_NEVER_A_NAME = _NO_CITY | _PLACING | _HINTING | _TOPICS
_SHORT = 3
"""Known names up to this many letters (`NYC`, `Rio`) count only as they are written, since they may be words."""


@attrs.frozen
class Mention:
    """A name that may be a city's; `placed` when the word before it (`in`, `for`) leaves little doubt."""

    name: str
    placed: bool


@attrs.frozen
class _Text:
    """A text cut into words, with where each begins and ends."""

    text: str
    spans: Sequence[tuple[int, int]]

    def word(self, index: int) -> str:
        start, end = self.spans[index]
        return _POSSESSIVE.sub("", self.text[start:end])

    def low(self, index: int) -> str:
        return self.word(index).casefold() if 0 <= index < len(self.spans) else ""

    def name(self, first: int, count: int) -> str:
        return _POSSESSIVE.sub("", self.text[self.spans[first][0] : self.spans[first + count - 1][1]])

    def between(self, index: int) -> str:
        """What stands before the word, from the end of the one before it."""
        return self.text[self.spans[index - 1][1] : self.spans[index][0]] if index else "."

    def follows(self, index: int) -> bool:
        """Whether the word can belong to one name with the word before it."""
        gap = self.between(index)
        return gap.isspace() or (gap.strip() == "." and self.low(index - 1) in _ABBREVIATED)

    def capitalised(self, index: int) -> bool:
        # Scripts without capitals have no lower case either, so their words count.
        return not self.word(index)[0].islower() and self.low(index) not in _NEVER_A_NAME


class CityFinder:
    """Finds the cities that a text names; `known` names count even without capitals or a preposition."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        names = list(known)
        self._known = frozenset(fold(name) for name in names if len(name) > _SHORT)
        self._short = frozenset(name for name in names if len(name) <= _SHORT)
        self._longest = max((len(fold(name).split()) for name in names), default=0)

    def mentions(self, text: str) -> list[Mention]:
        """Return what may be a city: first what a preposition places, then the rest, each in the text's order.

        "Not Oslo", "instead of Oslo" and "rather than Oslo" are no mentions of Oslo.
        """
        words = _Text(text, [match.span() for match in _WORD.finditer(text)])
        found: list[Mention] = []
        index = 0
        while index < len(words.spans):
            count = self._known_at(words, index)
            known = count > 0
            count = count or self._capitalised_at(words, index)
            before = words.low(index - 1)
            if before == "the":
                before = words.low(index - 2)
            within_sentence = words.between(index).isspace()
            placed = within_sentence and before in _PLACING
            hinted = within_sentence and (before in _HINTING or words.low(index + count) in _TOPICS)
            if count and (known or placed or hinted) and not _declined(words, index):
                found.append(Mention(words.name(index, count), placed))
            index += max(count, 1)
        return sorted(found, key=lambda mention: not mention.placed)

    def _known_at(self, words: _Text, index: int) -> int:
        """Count the words of the longest known name that begins at `index`."""
        for count in range(min(self._longest, len(words.spans) - index), 0, -1):
            name = words.name(index, count)
            if name in self._short or fold(name) in self._known:
                return count
        return 0

    def _capitalised_at(self, words: _Text, index: int) -> int:
        """Count the words of the capitalised phrase that begins at `index`, up to where a known name begins."""
        count = end = 0
        while index + end < len(words.spans) and (end == 0 or words.follows(index + end)):
            if words.capitalised(index + end):
                if end and self._known_at(words, index + end):
                    break
                count = end + 1
            elif not (count and words.low(index + end) in _JOINING):
                break
            end += 1
        return count


def _declined(words: _Text, index: int) -> bool:
    """Say whether the words before a name rule it out, with or without a preposition: "not in Oslo"."""
    last = index - (words.low(index - 1) in _PLACING)
    if not all(words.between(at).isspace() for at in range(last, index + 1)):
        return False
    before, nearest = words.low(last - 2), words.low(last - 1)
    return (before, nearest) in _DECLINING or (nearest == "not" and before not in _NOT_DECLINING)
