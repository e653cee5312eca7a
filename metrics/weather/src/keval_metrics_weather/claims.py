"""Claims: what an answer states about the asked city on a day, told apart from all else that it mentions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeVar

import attrs

from keval_metrics_weather.cities import cities_named, find_name
from keval_metrics_weather.conditions import Condition, Vocabulary, conditions
from keval_metrics_weather.days import day_mentions
from keval_metrics_weather.temperatures import Temperature, temperatures
from keval_metrics_weather.words import Text, read

__all__ = ["Claims", "claims"]

T = TypeVar("T", Temperature, Condition)


@attrs.frozen
class Claims:
    """What an answer states about one city, and how many temperatures it gives for other places."""

    temperatures: tuple[tuple[Temperature, str | None], ...]
    conditions: tuple[tuple[Condition, str | None], ...]
    elsewhere: int


@attrs.frozen
class _Anchors:
    """Offsets in a text that what stands near them belongs to, each with a value."""

    text: Text
    starts: Sequence[int]
    values: Sequence[str]

    @classmethod
    def of(cls, text: Text, found: list[tuple[int, str]]) -> _Anchors:
        found.sort()
        return cls(text, [start for start, _ in found], [value for _, value in found])

    def near(self, offset: int, following: int) -> str | None:
        """Return what an offset belongs to.

        That is the last anchor before it in the same clause, else the next one in the same clause (unless another
        mention, at `following`, comes first), else the last one anywhere before.
        """
        before = bisect_right(self.starts, offset) - 1
        clause = self.text.clause(offset)
        if before >= 0 and self.text.clause(self.starts[before]) == clause:
            return self.values[before]
        after = before + 1
        reachable = after < len(self.starts) and self.starts[after] < following
        if reachable and self.text.clause(self.starts[after]) == clause:
            return self.values[after]
        return self.values[before] if before >= 0 else None


_HERE, _ELSEWHERE = "here", "elsewhere"


def claims(
    answer: Text, names: Sequence[str], others: Sequence[str], vocabulary: Vocabulary, fahrenheit: bool
) -> Claims:
    """Read what an answer states about the city called `names`, leaving out what it states about other places.

    `others` are further places the question names. An answer that never names the asked city is all about it.
    """
    days = _Anchors.of(answer, [(mention.start, mention.day) for mention in day_mentions(answer)])
    places = _Anchors.of(answer, _places(answer, names, others))
    temps, elsewhere = _placed(temperatures(answer, fahrenheit), days, places)
    spoken, _ = _placed(conditions(answer, vocabulary), days, places)
    return Claims(temps, spoken, elsewhere)


def _places(answer: Text, names: Sequence[str], others: Sequence[str]) -> list[tuple[int, str]]:
    asked = {start for name in names for start in find_name(answer, name)}
    if not asked:
        return []
    known = {word for name in names for word in read(name).words}
    found = {start: _ELSEWHERE for name in others for start in find_name(answer, name)}
    found |= {city.start: _ELSEWHERE for city in cities_named(answer) if known.isdisjoint(city.words)}
    return list((found | dict.fromkeys(asked, _HERE)).items())


def _placed(mentions: Sequence[T], days: _Anchors, places: _Anchors) -> tuple[tuple[tuple[T, str | None], ...], int]:
    """Give each mention its day and drop those of other places, counting them."""
    kept = []
    dropped = 0
    for number, mention in enumerate(mentions, 1):
        following = mentions[number].start if number < len(mentions) else len(days.text.plain) + 1
        if places.near(mention.start, following) == _ELSEWHERE:
            dropped += 1
        else:
            kept.append((mention, days.near(mention.start, following)))
    return tuple(kept), dropped
