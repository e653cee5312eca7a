"""Comparison: how far a stated temperature is from the true one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from keval_metrics_weather.reading.statements import Statement
from keval_metrics_weather.truth import Truth

__all__ = ["Moment", "celsius", "compare"]

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
