"""Measurements: the numbers of a text that measure the weather, as against dates, times and counts."""

from __future__ import annotations

import re
from functools import lru_cache

import attrs

from keval_metrics_weather.conditions import conditions
from keval_metrics_weather.temperatures import temperatures
from keval_metrics_weather.words import Text

__all__ = ["WeatherData", "weather_data"]

_MEASURED = re.compile(
    r"\d(?<![\w.,]\d)\d{0,3}(?:[.,]\d{1,3})? ?(?:%|(?:percent|km/h|kmh|kph|mph|m/s|mm|cm|hpa|mbar|mb|knots?|kn)\b)"
)
_NAMED = re.compile(
    r"\b(?:humidity|wind|winds|pressure|uv index)(?: speed)?(?: (?:is|of|at|around))?:? (\d{1,4})(?!\d|[:/-])"
)
_NAMES = frozenset({"humidity", "wind", "winds", "pressure", "uv"})


@attrs.frozen
class WeatherData:
    """The measurements of a text as written, the weather it speaks of, and the offset of the first of both."""

    measured: tuple[str, ...]
    spoken: tuple[str, ...]
    start: int | None


@lru_cache(maxsize=64)
def weather_data(text: Text) -> WeatherData:
    """Return the temperatures and other measurements of a text and the conditions it asserts or denies."""
    found = [(temperature.start, temperature.said) for temperature in temperatures(text)]
    found += [(match.start(), match.group().strip()) for match in _MEASURED.finditer(text.plain)]
    if text.said & _NAMES:
        found += [(match.start(), match.group()) for match in _NAMED.finditer(text.plain)]
    spoken = [condition for condition in conditions(text) if condition.stance != "possible"]
    starts = [start for start, _ in found] + [condition.start for condition in spoken]
    return WeatherData(
        tuple(dict.fromkeys(said for _, said in sorted(found))),
        tuple(dict.fromkeys(condition.word for condition in spoken)),
        min(starts, default=None),
    )
