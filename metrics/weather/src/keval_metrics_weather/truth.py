"""Truth: the weather that an answer is compared with, read from the sample's facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any

import attrs

from keval_metrics_weather.reading.conditions import Group, groups_of
from keval_metrics_weather.reading.times import NOW, SEVERAL, TODAY, TONIGHT

# The plain type comes first, as asking the abstract one takes five times as long.
_MAPPINGS = (dict, Mapping)


@attrs.frozen
class Day:
    """One day of the forecast, in °C; what is not known is `None` or empty.

    It is read from `listed` when asked for, as few questions are about all days.
    """

    listed: Mapping[str, Any]

    @property
    def date(self) -> date | None:
        written = self.listed.get("date")
        try:
            return date.fromisoformat(written[:10]) if isinstance(written, str) else None
        except ValueError:
            return None  # a date that cannot be read leaves the day its place in the list

    @property
    def low(self) -> float | None:
        return _number(self.listed.get("min_temp"))

    @property
    def high(self) -> float | None:
        return _number(self.listed.get("max_temp"))

    @property
    def conditions(self) -> frozenset[Group]:
        return _conditions(self.listed)


@attrs.frozen
class Truth:
    """The weather of one city: `temperature` in °C and `conditions` now, and the days from today on.

    `others` are the same for the other cities that the question asks about.
    """

    city: str
    temperature: float | None
    conditions: frozenset[Group]
    days: tuple[Day, ...]
    others: tuple[Truth, ...] = ()

    def days_meant(self, day: str) -> tuple[int, ...]:
        """Return which days of the forecast a mention means, as indices; none when the forecast does not reach it.

        The first day listed is today, whatever its date, and the second is tomorrow.
        """
        count = len(self.days)
        if day == SEVERAL:
            return tuple(range(count))
        first, spans, last = day.partition("..")
        if spans:
            begin, end = self.days_meant(first), self.days_meant(last)
            return tuple(range(begin[0], end[-1] + 1)) if begin and end else begin or end
        if day in (NOW, TODAY, TONIGHT):
            return (0,) if count else ()
        if day.startswith("+"):
            ahead = int(day[1:])
            return (ahead,) if ahead < count else ()
        dated = [(index, listed.date) for index, listed in enumerate(self.days)]
        if day.startswith("weekday "):
            return tuple(index for index, on in dated if on is not None and on.weekday() == int(day[-1]))[:1]
        if day == "weekend":
            return tuple(index for index, on in dated if on is not None and on.weekday() >= 5)
        return tuple(index for index, on in dated if on is not None and f"{on.month:02}-{on.day:02}" == day)


@attrs.frozen(eq=False)
class _Same:
    """Facts as the key of a cache: equal to the very same object only, which the cache keeps alive."""

    facts: Mapping[str, Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.facts is other.facts

    def __hash__(self) -> int:
        return id(self.facts)


def truth_of(facts: Mapping[str, Any]) -> Truth | None:
    """Read `facts["weather"]`; `None` when there is no weather in it, as for an unknown city."""
    return _truth_of(_Same(facts))


@lru_cache(maxsize=64)
def _truth_of(same: _Same) -> Truth | None:
    weather = same.facts.get("weather")
    truth = _truth(weather)
    listed = weather.get("others") if isinstance(weather, _MAPPINGS) else None
    if truth is None or not isinstance(listed, (list, tuple)):
        return truth
    return attrs.evolve(truth, others=tuple([other for entry in listed if (other := _truth(entry)) is not None]))


def _truth(weather: object) -> Truth | None:
    if not isinstance(weather, _MAPPINGS):
        return None
    current = weather.get("current")
    current = current if isinstance(current, _MAPPINGS) else {}
    listed = weather.get("daily_summaries")
    listed = listed if isinstance(listed, (list, tuple)) else ()
    days = tuple([Day(entry) for entry in listed if isinstance(entry, _MAPPINGS)])
    temperature, conditions = _number(current.get("temperature")), _conditions(current)
    if temperature is None and not conditions and not days:
        return None
    city = weather.get("city")
    return Truth(city if isinstance(city, str) else "", temperature, conditions, days)


def _conditions(entry: Mapping[str, Any]) -> frozenset[Group]:
    main, description = entry.get("main_condition"), entry.get("description")
    groups = groups_of(main) if isinstance(main, str) else frozenset()
    return groups | groups_of(description) if isinstance(description, str) else groups


def _number(value: object) -> float | None:
    """Return a finite number as a float; anything else is unknown."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
