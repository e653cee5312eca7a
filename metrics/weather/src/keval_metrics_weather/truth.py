"""Truth: the weather a trial's answer is held to, from the sample's facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import attrs

from keval_metrics_weather.conditions import Group, groups_of

__all__ = ["Day", "Truth", "truth_of"]


@attrs.frozen
class Day:
    """One day of the forecast, in °C; what is not known is `None` or empty."""

    date: date | None
    low: float | None
    high: float | None
    conditions: frozenset[Group]


@attrs.frozen
class Truth:
    """The weather of one city: `temperature` in °C and `conditions` now, and the days from today on."""

    city: str
    temperature: float | None
    conditions: frozenset[Group]
    days: tuple[Day, ...]

    @property
    def dates(self) -> tuple[date | None, ...]:
        return tuple(day.date for day in self.days)


def truth_of(facts: Mapping[str, Any]) -> Truth | None:
    """Read `facts["weather"]`; `None` when there is no weather in it, as for an unknown city."""
    weather = facts.get("weather")
    if not isinstance(weather, Mapping):
        return None
    current = weather.get("current")
    current = current if isinstance(current, Mapping) else {}
    listed = weather.get("daily_summaries")
    listed = listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ()
    days = tuple(_day(entry) for entry in listed if isinstance(entry, Mapping))
    temperature, conditions = _number(current.get("temperature")), _conditions(current)
    if temperature is None and not conditions and not days:
        return None
    city = weather.get("city")
    return Truth(city if isinstance(city, str) else "", temperature, conditions, days)


def _day(entry: Mapping[str, Any]) -> Day:
    written = entry.get("date")
    try:
        on = date.fromisoformat(written[:10]) if isinstance(written, str) else None
    except ValueError:
        on = None  # a date that cannot be read leaves the day its place in the list
    return Day(on, _number(entry.get("min_temp")), _number(entry.get("max_temp")), _conditions(entry))


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
