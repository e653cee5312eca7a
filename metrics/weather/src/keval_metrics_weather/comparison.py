"""Comparison: which moment a statement is about, and how far a stated temperature is from the true one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from keval_metrics_weather.asked import Asked
from keval_metrics_weather.reading.conditions import Group
from keval_metrics_weather.reading.statements import Statement
from keval_metrics_weather.reading.times import LATER, NOW, PAST, TODAY, TONIGHT
from keval_metrics_weather.truth import Truth

__all__ = ["Moment", "celsius", "compare", "day_named", "moment_of", "true_conditions", "when"]

Moment: TypeAlias = tuple[int, ...] | None
"""Indices into the forecast's days; `None` is now."""


def compare(temperature: Statement, moment: Moment, truth: Truth, of_today: bool = False) -> tuple[float, str] | None:
    """Return how far off a temperature is in °C, and the truth in words; `None` when the truth is not known.

    One that is said `of_today`, rather than of now, may be right for either.
    """
    if moment is None:
        return _compare_now(temperature, truth, of_today)
    days = [truth.days[index] for index in moment if index < len(truth.days)]
    lows = [day.low for day in days if day.low is not None]
    highs = [day.high for day in days if day.high is not None]
    if temperature.kind == "high" and highs:
        actual, off = _nearest(highs, temperature)
        return off, f"high {celsius(actual)}"
    if temperature.kind == "low" and lows:
        actual, off = _nearest(lows, temperature)
        return off, f"low {celsius(actual)}"
    if temperature.kind != "temperature" or not lows or not highs:
        return None
    low, high = min(lows), max(highs)
    if temperature.is_range and not temperature.vague:
        off = max(abs(temperature.low - low), abs(temperature.high - high))
    else:
        off = max(low - temperature.high, temperature.low - high, 0.0)
    return round(off, 6), f"{celsius(low)} to {celsius(high)}"


def _nearest(actual: Sequence[float], temperature: Statement) -> tuple[float, float]:
    """Return the true extreme nearest to a stated one, and how far off that is, at the worse end of a range."""
    nearest = min(actual, key=lambda value: abs(value - (temperature.low + temperature.high) / 2))
    if temperature.vague:
        return nearest, round(max(temperature.low - nearest, nearest - temperature.high, 0.0), 6)
    return nearest, round(max(abs(nearest - temperature.low), abs(nearest - temperature.high)), 6)


def _compare_now(temperature: Statement, truth: Truth, of_today: bool) -> tuple[float, str] | None:
    actual = truth.temperature
    if actual is None:
        return compare(temperature, (0,), truth) if truth.days else None
    if temperature.vague:
        off = max(temperature.low - actual, actual - temperature.high, 0.0)
    else:
        off = max(abs(temperature.low - actual), abs(temperature.high - actual))
    if (temperature.is_range or of_today) and off and truth.days:
        day = compare(temperature, (0,), truth)  # "between 3 and 7 °C" may be the day's range
        if day is not None and day[0] < off:
            return day
    return round(off, 6), celsius(actual)


def celsius(value: float) -> str:
    """Return a temperature as reasons show it: `−5 °C`."""
    return f"{'−' if value < 0 else ''}{abs(value):g} °C"


def moment_of(day: str | None, about: Asked, truth: Truth, temperature: Statement | None) -> Moment:
    """Return the moment that a statement is about; an empty tuple when it was not asked for."""
    days = about.days
    extreme = temperature is not None and temperature.kind in ("high", "low")
    if day is None:
        if about.now and len(days) <= 1:
            return days if extreme else None
        return days
    if day == PAST or (day == LATER and about.now and not (truth.days and 0 in days)):
        return ()
    if day == LATER:
        return (0,) if about.now else days
    if day in (NOW, TODAY, TONIGHT):
        if about.now and not extreme:
            return None
        return tuple(index for index in (0,) if index in days and truth.days)
    meant = truth.days_meant(day)
    return meant if set(meant) & set(days) else ()


def true_conditions(moment: Moment, whole_day: bool, truth: Truth) -> frozenset[Group]:
    """Return the weather at a moment; that of a `whole_day` counts beside that of now."""
    today = truth.days[0].conditions if truth.days else frozenset()
    if moment is None:
        return truth.conditions | today if whole_day or not truth.conditions else truth.conditions
    return frozenset().union(*(truth.days[index].conditions for index in moment if index < len(truth.days)))


def day_named(truth: Truth, index: int) -> str:
    """Return a day of the forecast as reasons name it."""
    day = truth.days[index].date if index < len(truth.days) else None
    return day.isoformat() if day else f"day {index + 1}"


def when(moment: Moment, truth: Truth) -> str:
    """Return a moment as reasons name it: ` for 2026-06-19`, or nothing for now."""
    if moment is None:
        return ""
    first, last = moment[0], moment[-1]
    return f" for {day_named(truth, first)}" + (f" to {day_named(truth, last)}" if first != last else "")
