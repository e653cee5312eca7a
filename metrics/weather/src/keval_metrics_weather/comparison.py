"""Comparison: how far a stated temperature is from the true one."""

from __future__ import annotations

from typing import TypeAlias

from keval_metrics_weather.temperatures import Temperature
from keval_metrics_weather.truth import Truth

__all__ = ["Moment", "celsius", "compare"]

Moment: TypeAlias = tuple[int, ...] | None
"""Indices into the forecast's days; `None` is now."""

_WIDEST_RANGE = 10.0
"""A wider range (°C) for the temperature now says too little to be right by containing it."""


def compare(temperature: Temperature, moment: Moment, truth: Truth, of_today: bool = False) -> tuple[float, str] | None:
    """Return how far off a temperature is in °C, and the truth in words; `None` when the truth is not known.

    One that is said `of_today`, rather than of now, may be right for either.
    """
    if moment is None:
        return _compare_now(temperature, truth, of_today)
    days = [truth.days[index] for index in moment if index < len(truth.days)]
    lows = [day.low for day in days if day.low is not None]
    highs = [day.high for day in days if day.high is not None]
    if temperature.kind == "high" and highs:
        actual = min(highs, key=lambda high: abs(high - temperature.high))
        return round(abs(actual - temperature.high), 6), f"high {celsius(actual)}"
    if temperature.kind == "low" and lows:
        actual = min(lows, key=lambda low: abs(low - temperature.low))
        return round(abs(actual - temperature.low), 6), f"low {celsius(actual)}"
    if temperature.kind != "plain" or not lows or not highs:
        return None
    low, high = min(lows), max(highs)
    if temperature.is_range:
        off = max(abs(temperature.low - low), abs(temperature.high - high))
    else:
        off = max(low - temperature.low, temperature.low - high, 0.0)
    return round(off, 6), f"{celsius(low)} to {celsius(high)}"


def _compare_now(temperature: Temperature, truth: Truth, of_today: bool) -> tuple[float, str] | None:
    actual = truth.temperature
    if actual is None:
        return compare(temperature, (0,), truth) if truth.days else None
    if temperature.high - temperature.low > _WIDEST_RANGE:
        off = max(abs(temperature.low - actual), abs(temperature.high - actual))
    else:
        off = max(temperature.low - actual, actual - temperature.high, 0.0)
    if (temperature.is_range or of_today) and off and truth.days:
        day = compare(temperature, (0,), truth)  # "between 3 and 7 °C" may be the day's range
        if day is not None and day[0] < off:
            return day
    return round(off, 6), celsius(actual)


def celsius(value: float) -> str:
    """Return a temperature as reasons show it: `−5 °C`."""
    return f"{'−' if value < 0 else ''}{abs(value):g} °C"
