"""Where: how the clauses of a text hang together, and which places and times its parts are about."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import inf

import attrs

from keval_metrics_weather.reading.blocks import Span
from keval_metrics_weather.reading.names import Place
from keval_metrics_weather.reading.times import PAST, Time
from keval_metrics_weather.reading.words import Text

__all__ = ["SENTENCE_ENDS", "Anchors", "Where"]


_SEAMS = frozenset({".", "!", "?", ";", ",", "\n", "|", "—", "and", "but", "while", "whereas", "however"})
"""The words and marks at which a clause ends."""


SENTENCE_ENDS = frozenset({".", "!", "?", "\n", "|"})


_COMPARING_WITH = frozenset({"after", "than", "unlike", "from", "following", "since", "with", "to"})


_RIGHT_AFTER = 4


@attrs.frozen
class Anchors:
    """Offsets in a text that what stands near them belongs to, each with the number of its clause and a value.

    `until` is the offset up to which each holds, and `lasting` the value that holds from there on.
    """

    starts: Sequence[int]
    clauses: Sequence[int]
    values: Sequence[str]
    until: Sequence[float]
    lasting: Sequence[str | None]

    def near(self, clauses: tuple[int, int], offset: int, end: int, following: int) -> int | None:
        """Return the number of the anchor that a mention from `offset` to `end` belongs to, `None` if there is none.

        `clauses` are those that it begins and ends in. Its anchor is the one right after it ("25 °C yesterday"), else
        the last before it in the same clause, else the next in the same clause (unless another mention, at `following`,
        comes first), else the last one anywhere before.
        """
        after = bisect_right(self.starts, offset)
        next_one = after < len(self.starts) and self.starts[after] < following and self.clauses[after] == clauses[1]
        if next_one and self.starts[after] - end <= _RIGHT_AFTER:
            return after
        if after and self.clauses[after - 1] == clauses[0]:
            return after - 1
        if next_one:
            return after
        return after - 1 if after else None

    def value(self, number: int | None, offset: int) -> str | None:
        """Return what holds at an offset that belongs to an anchor."""
        if number is None:
            return None
        return self.values[number] if offset < self.until[number] else self.lasting[number]


@attrs.frozen
class Where:
    """How the clauses of a text hang together, and which places and times its parts are about."""

    text: Text
    seams: Sequence[int]
    days: Anchors
    places: Anchors

    @classmethod
    def of(cls, text: Text, places: Sequence[Place], times: Sequence[Time]) -> Where:
        """Read a text's clauses."""
        seams = sorted([text.starts[place] for word in text.said & _SEAMS for place in text.index[word]])
        named = [(place.start, place.key) for place in places if not _compared_with(text, place)]
        days = _anchors(text, seams, [(time.start, time.day) for time in times])
        return cls(text, seams, days, _anchors(text, seams, named))

    def clause(self, offset: int) -> Span:
        """Return from where to where the clause around an offset goes."""
        number = bisect_right(self.seams, offset)
        begin = self.seams[number - 1] if number else 0
        return begin, self.seams[number] if number < len(self.seams) else len(self.text.plain)

    def told(self, anchors: Anchors, mention: Span, following: int, heads: Sequence[Span] = ()) -> int | None:
        """Return the anchor of a mention, given by its offsets: the one in its column's head, else the one near it."""
        for first, last in heads:
            begin, end = self.text.start_of(first), self.text.start_of(last)
            number = bisect_left(anchors.starts, begin)
            if number < len(anchors.starts) and anchors.starts[number] < end:
                return number
        clauses = bisect_right(self.seams, mention[0]), bisect_left(self.seams, mention[1])
        return anchors.near(clauses, *mention, following)


def _compared_with(text: Text, place: Place) -> bool:
    """Say whether a place is only what another is compared with: "milder than Mikkeli: −5 °C"."""
    at = bisect_left(text.starts, place.start)
    if text.word_at(at - 1) in ("near", "outside"):
        return True
    return text.word_at(at - 1) in ("than", "unlike") and text.word_at(at + len(place.words)) not in ("(", "at", "is")


def _anchors(text: Text, seams: Sequence[int], found: list[tuple[int, str]]) -> Anchors:
    found.sort()
    starts = [start for start, _ in found]
    values = [value for _, value in found]
    until = [inf] * len(found)
    lasting: list[str | None] = [*values]
    if PAST in values:
        ends = sorted([text.starts[place] for mark in text.said & SENTENCE_ENDS for place in text.index[mark]])
        ends.append(len(text.plain))
        for number, (start, value) in enumerate(found):
            if value == PAST:
                until[number] = _end_of_the_past(text, start, ends[bisect_right(ends, start)])
                lasting[number] = lasting[number - 1] if number else None
    return Anchors(starts, [bisect_right(seams, start) for start in starts], values, until, lasting)


def _end_of_the_past(text: Text, start: int, sentence_end: int) -> int:
    """Return where a past day ends: with its sentence, or with its clause when it is compared with or came before."""
    place = bisect_left(text.starts, start)
    if _COMPARING_WITH.isdisjoint(text.words[max(place - 3, 0) : place]):
        return sentence_end
    commas = text.index.get(",", ())
    at = bisect_right(commas, place)
    if at < len(commas) and text.starts[commas[at]] < sentence_end and text.word_at(commas[at] + 1) != "when":
        return text.starts[commas[at]]
    return sentence_end
