"""Queries: what a user's message asks for, and what it leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import attrs

from keval_metrics_weather.cities import City, cities_asked
from keval_metrics_weather.days import NOW, TODAY, day_mentions
from keval_metrics_weather.phrases import find
from keval_metrics_weather.preferences import preferences_stated
from keval_metrics_weather.words import Text, read

__all__ = ["Query", "gaps", "query"]

_WEATHER = (
    "weather", "temperature", "forecast", "rain", "rainy", "snow", "snowy", "sun", "sunny", "cloud", "cloudy",
    "wind", "windy", "humid", "humidity", "hot", "cold", "warm", "cool", "chilly", "freezing", "storm",
    "thunderstorm", "fog", "foggy", "degree", "celsius", "fahrenheit", "climate", "drizzle", "overcast", "mist",
    "haze", "heat", "ice", "icy", "dry", "wet", "clear",
)  # fmt: skip
_ADVICE = (
    "should i", "should we", "recommend", "suggest", "advice", "advise", "umbrella", "jacket", "coat", "wear",
    "pack", "bring", "dress", "what to do", "activity", "good day", "good idea", "good time", "do i need",
    "can i go", "plan",
)  # fmt: skip
_FUTURE = ("forecast", "will it", "going to", "later")
_FUTURE_WITHOUT_A_DAY = ("will it", "will there", "will i", "going to", "later")
_VAGUE = ("something", "anything", "stuff", "whatever", "some info", "things", "that place", "over there")
_COURTESIES = frozenset({"hello", "hi", "hey", "thanks", "thank", "bye", "goodbye"})
_MARKS = frozenset("?!.,;:-–—()|\n")


@attrs.frozen
class Query:
    """A user's message: the places and days it names and what it wants."""

    text: Text
    cities: tuple[City, ...]
    days: tuple[str, ...]
    about_weather: bool
    wants_advice: bool
    wants_forecast: bool

    @property
    def fahrenheit(self) -> bool:
        """Whether it asks for degrees Fahrenheit."""
        return "fahrenheit" in self.text.index

    @property
    def concerns_weather(self) -> bool:
        return self.about_weather or self.wants_advice


@lru_cache(maxsize=32)
def query(message: str | None) -> Query:
    """Read a user's message."""
    text = read(message)
    days = tuple(mention.day for mention in day_mentions(text))
    ahead = any(day not in (NOW, TODAY) for day in days) or bool(find(text, _FUTURE))
    return Query(
        text, cities_asked(text), days, bool(find(text, _WEATHER)), bool(find(text, _ADVICE)), wants_forecast=ahead
    )


def gaps(asked: Query, earlier: Iterable[str | None]) -> tuple[str, ...]:
    """Return what makes a message ambiguous: `no location`, `no time`, `vague`, `unclear intent`.

    `earlier` is what was said before; a place named there fills a missing location, and a short follow-up is clear.
    """
    told = tuple(earlier)
    words = [word for word in asked.text.words if word not in _MARKS]
    if _COURTESIES & asked.text.index.keys() or (preferences_stated(asked.text) and "?" not in asked.text.index):
        return ()
    found = []
    if asked.concerns_weather and not asked.cities and not any(cities_asked(read(said)) for said in told):
        found.append("no location")
    if asked.concerns_weather and not asked.days and find(asked.text, _FUTURE_WITHOUT_A_DAY):
        found.append("no time")
    if find(asked.text, _VAGUE) or (len(words) <= 2 and not asked.cities and not asked.days and not told):
        found.append("vague")
    if len(words) <= 3 and not asked.concerns_weather and not asked.days and not told:
        found.append("unclear intent")
    return tuple(found)
