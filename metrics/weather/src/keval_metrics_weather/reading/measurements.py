"""Measurements: the numbers of a text that measure the weather, as against dates, times and counts."""

from __future__ import annotations

import re
from functools import lru_cache

import attrs

from keval_metrics_weather.reading.conditions import conditions
from keval_metrics_weather.reading.quantities import quantities
from keval_metrics_weather.reading.said import Said
from keval_metrics_weather.reading.words import Text

__all__ = ["WeatherData", "weather_data"]

_MEASURED = re.compile(
    r"\d(?<![\w.,]\d)\d{0,3}(?:[.,]\d{1,3})? ?(?:%|(?:percent|km/h|kmh|kph|mph|m/s|mm|cm|hpa|mbar|mb|knots?|kn)\b)"
)
_NAMED = re.compile(
    r"\b(?:humidity|wind|winds|pressure|uv index)(?: speed)?(?: (?:is|of|at|around))?:? "
    r"(\d{1,4}(?:[.,]\d{1,3})?)(?![.,]?\d|[:/-])"
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
    measured = [(each.start, each.said, each.end) for each in quantities(text, False)]
    measured += [(match.start(), match.group(), match.end()) for match in _MEASURED.finditer(text.plain)]
    if not text.said.isdisjoint(_NAMES):
        known = {start for start, _, _ in measured}
        named = _NAMED.finditer(text.plain)
        measured += [(match.start(), match.group(), match.end()) for match in named if match.start(1) not in known]
    measured.sort()
    spoken = [each for each in conditions(text) if each.stance != "possible"]
    figures = [Said.between(text, start, end, said) for start, said, end in measured]
    words = [Said.between(text, each.start, each.end, each.word) for each in spoken]
    return WeatherData(
        tuple(dict.fromkeys(figures)),
        tuple(dict.fromkeys(words)),
        min([each.start for each in (*figures[:1], *words[:1])], default=None),
    )
