"""The hook `weather/ground-truth`: what the weather really is in the city a sample asks about."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from keval import Sample
from keval.plugin import PreflightError, hookimpl
from keval_weather.choice import open_source
from keval_weather.cities import CityFinder
from keval_weather.names import fold
from keval_weather.snapshot import load_snapshot
from keval_weather.source import MAX_DAYS, UnknownCityError, WeatherError

__all__ = ["GroundTruth"]

_CURRENT_FIELDS = ("temperature", "feels_like", "humidity", "wind_speed", "main_condition", "description")
_DAILY_FIELDS = ("date", "min_temp", "max_temp", "main_condition")


@attrs.frozen(eq=False)
class GroundTruth:
    """Adds the fact `weather`: the truth that every arm's answers are held to, from the server's own source.

    The city is the sample's `metadata.city`, else the one that the last question names, else the one named most
    recently before it. Each city is looked up once.
    """

    _finder: CityFinder = attrs.field(factory=lambda: CityFinder(load_snapshot().names), init=False, repr=False)
    _truths: dict[str, Mapping[str, Any] | None] = attrs.field(factory=dict, init=False, repr=False)
    _locks: defaultdict[str, asyncio.Lock] = attrs.field(
        factory=lambda: defaultdict(asyncio.Lock), init=False, repr=False
    )

    @hookimpl
    async def keval_sample_facts(self, sample: Sample) -> Mapping[str, Any] | None:
        """Return `{"weather": {"city", "current", "daily_summaries", "source"}}`.

        A city that the source does not know gives `{"weather": {"city", "unknown": true}}`, no city `None`.

        Raises:
            PreflightError: the source cannot be asked.
        """
        if "weather" in sample.facts:
            return None
        try:
            weather = await self._weather(sample)
        except WeatherError as error:
            raise PreflightError(f"sample {sample.id!r}: no ground truth: {error}") from error
        return {"weather": weather} if weather else None

    async def _weather(self, sample: Sample) -> Mapping[str, Any] | None:
        if city := sample.metadata.get("city"):
            return await self._truth(str(city)) or _unknown(str(city))
        for text in _latest_first(sample):
            mentions = self._finder.mentions(text)
            # Where a preposition places a city that nobody knows, another name in the same text is not what is asked.
            placed = [mention.name for mention in mentions if mention.placed]
            for name in placed or [mention.name for mention in mentions]:
                if truth := await self._truth(name):
                    return truth
            if placed:
                return _unknown(placed[0])
        return None

    async def _truth(self, city: str) -> Mapping[str, Any] | None:
        """Look the city up, or remember that there is none."""
        key = fold(city)
        async with self._locks[key]:
            if key not in self._truths:
                self._truths[key] = await _look_up(city)
            return self._truths[key]


def _latest_first(sample: Sample) -> Iterator[str]:
    yield from reversed(sample.asked)
    for message in reversed(sample.history):
        if message.role in ("user", "assistant"):
            yield message.text


async def _look_up(city: str) -> Mapping[str, Any] | None:
    async with open_source(os.environ) as source:
        try:
            current = await source.current(city)
            forecast = await source.forecast(city, MAX_DAYS)
        except UnknownCityError:
            return None
        return {
            "city": current["city"],
            "country": current["country"],
            "current": {field: value for field, value in current.items() if field in _CURRENT_FIELDS},
            "daily_summaries": [
                {field: value for field, value in day.items() if field in _DAILY_FIELDS} for day in forecast["days"]
            ],
            "source": source.name,
        }


def _unknown(city: str) -> Mapping[str, Any]:
    return {"city": city, "unknown": True}
