"""The hook `weather/ground-truth`: what the weather really is in the city a sample asks about."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval import Sample
from keval.plugin import PreflightError, hookimpl
from keval_metrics_weather import places_in_answer, places_in_question
from keval_weather.snapshot import open_source
from keval_weather.source import MAX_DAYS, UnknownCityError, WeatherError, fold

_CURRENT_FIELDS = ("temperature", "feels_like", "humidity", "wind_speed", "main_condition", "description")
_DAILY_FIELDS = ("date", "min_temp", "max_temp", "main_condition")


@attrs.frozen(eq=False)
class GroundTruth:
    """Adds the fact `weather`: the truth that every arm's answers are held to, from the server's own source.

    The city is the sample's `metadata.city`, else the one that the last question names, else the one named most
    recently before it; what the metrics read as a place is one here, too. Where a question names several, the first is
    the fact and the others are under `others`. Each city is looked up once.
    """

    _truths: dict[str, Mapping[str, Any] | None] = attrs.field(factory=dict, init=False, repr=False)
    _locks: defaultdict[str, asyncio.Lock] = attrs.field(
        factory=lambda: defaultdict(asyncio.Lock), init=False, repr=False
    )

    @hookimpl
    async def keval_sample_facts(self, sample: Sample) -> Mapping[str, Any] | None:
        """Return `{"weather": {"city", "current", "daily_summaries", "source"}}`; `others` where several are asked for.

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
        for names in _named_latest_first(sample):
            known = [truth for name in names if (truth := await self._truth(name))]
            if known:
                return {**known[0], "others": known[1:]} if len(known) > 1 else known[0]
            if names:
                return _unknown(names[0])
        return None

    async def _truth(self, city: str) -> Mapping[str, Any] | None:
        """Look the city up, or remember that there is none."""
        key = fold(city)
        async with self._locks[key]:
            if key not in self._truths:
                self._truths[key] = await _look_up(city)
            return self._truths[key]


def _named_latest_first(sample: Sample) -> Iterator[Sequence[str]]:
    """Yield the places that each message names, the last message's first."""
    for text in reversed(sample.asked):
        yield places_in_question(text)
    for message in reversed(sample.history):
        if message.role == "user":
            yield places_in_question(message.text)
        elif message.role == "assistant":
            yield places_in_answer(message.text)


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
