"""Claims: what an answer states about the asked city on a day, told apart from all else that it mentions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from typing import TypeVar

import attrs

from keval_metrics_weather.cities import cities_named, find_names
from keval_metrics_weather.conditions import Condition, Vocabulary, conditions
from keval_metrics_weather.days import PAST, day_mentions
from keval_metrics_weather.temperatures import Temperature, temperatures
from keval_metrics_weather.words import Text, read

__all__ = ["Claims", "claims"]

T = TypeVar("T", Temperature, Condition)

_SEAMS = frozenset({".", "!", "?", ";", ",", "\n", "|", "—", "and", "but", "while", "whereas", "however"})
"""The words and marks at which a clause ends."""

_SENTENCE_ENDS = frozenset({".", "!", "?", "\n", "|"})


@attrs.frozen
class Claims:
    """What an answer states about one city, and how many temperatures it gives for other places."""

    temperatures: tuple[tuple[Temperature, str | None], ...]
    conditions: tuple[tuple[Condition, str | None], ...]
    elsewhere: int


@attrs.frozen
class _Anchors:
    """Offsets in a text that what stands near them belongs to, each with the number of its clause and a value.

    `until` is the offset up to which each holds, and `lasting` the value that holds from there on.
    """

    starts: Sequence[int]
    clauses: Sequence[int]
    values: Sequence[str]
    until: Sequence[float]
    lasting: Sequence[str | None]

    @classmethod
    def of(cls, text: Text, seams: Sequence[int], found: list[tuple[int, str]]) -> _Anchors:
        found.sort()
        starts = [start for start, _ in found]
        values = [value for _, value in found]
        until = [inf] * len(found)
        lasting: list[str | None] = [*values]
        if PAST in values:
            ends = sorted([text.starts[place] for mark in text.said & _SENTENCE_ENDS for place in text.index[mark]])
            ends.append(len(text.plain))
            for number, (start, value) in enumerate(found):
                if value == PAST:
                    until[number] = ends[bisect_right(ends, start)]
                    lasting[number] = lasting[number - 1] if number else None
        return cls(starts, [bisect_right(seams, start) for start in starts], values, until, lasting)

    def near(self, offset: int, clause: int, following: int) -> str | None:
        """Return what an offset in a clause belongs to.

        That is the last anchor before it in the same clause, else the next one in the same clause (unless another
        mention, at `following`, comes first), else the last one anywhere before; but a past day holds only to
        the end of its sentence.
        """
        after = bisect_right(self.starts, offset)
        if after and self.clauses[after - 1] == clause:
            return self.values[after - 1]
        if after < len(self.starts) and self.starts[after] < following and self.clauses[after] == clause:
            return self.values[after]
        if not after:
            return None
        return self.values[after - 1] if offset < self.until[after - 1] else self.lasting[after - 1]


_HERE, _ELSEWHERE = "here", "elsewhere"


def claims(
    answer: Text, names: Sequence[str], others: Sequence[str], vocabulary: Vocabulary, fahrenheit: bool
) -> Claims:
    """Read what an answer states about the city called `names`, leaving out what it states about other places.

    `others` are further places the question names. An answer that never names the asked city is all about it.
    """
    seams = sorted([answer.starts[place] for word in answer.said & _SEAMS for place in answer.index[word]])
    days = _Anchors.of(answer, seams, [(mention.start, mention.day) for mention in day_mentions(answer)])
    places = _Anchors.of(answer, seams, _places(answer, names, others))
    end = len(answer.plain)
    temps, elsewhere = _placed(temperatures(answer, fahrenheit), end, seams, days, places)
    spoken, _ = _placed(conditions(answer, vocabulary), end, seams, days, places)
    return Claims(temps, spoken, elsewhere)


def _places(answer: Text, names: Sequence[str], others: Sequence[str]) -> list[tuple[int, str]]:
    """Return where the asked city and other places are named; nothing when it is only one of the two."""
    known = {word for name in names for word in read(name).words}
    found = {start: _ELSEWHERE for starts in find_names(answer, others).values() for start in starts}
    found |= {city.start: _ELSEWHERE for city in cities_named(answer) if known.isdisjoint(city.words)}
    asked = [start for starts in find_names(answer, names).values() for start in starts] if found else []
    return list((found | dict.fromkeys(asked, _HERE)).items()) if asked else []


def _placed(
    mentions: Sequence[T], end: int, seams: Sequence[int], days: _Anchors, places: _Anchors
) -> tuple[tuple[tuple[T, str | None], ...], int]:
    """Give each mention its day and drop those of other places, counting them; the text is `end` characters long."""
    kept = []
    for number, mention in enumerate(mentions, 1):
        following = mentions[number].start if number < len(mentions) else end + 1
        clause = bisect_right(seams, mention.start)
        if places.near(mention.start, clause, following) != _ELSEWHERE:
            kept.append((mention, days.near(mention.start, clause, following)))
    return tuple(kept), len(mentions) - len(kept)
