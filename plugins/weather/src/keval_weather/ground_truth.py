"""The hook `weather/ground-truth`: what the weather really is in the city a sample asks about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keval import Sample
from keval.plugin import hookimpl
from keval_metrics_weather import places_in_answer, places_in_question
from keval_weather.snapshot import load_snapshot
from keval_weather.source import MAX_DAYS, UnknownCityError

_CURRENT_FIELDS = ("temperature", "feels_like", "humidity", "wind_speed", "main_condition", "description")
_DAILY_FIELDS = ("date", "min_temp", "max_temp", "main_condition")


class GroundTruth:
    """Adds the fact `weather`: the truth that every arm's answers are held to, as the server tells it.

    The city is the sample's `metadata.city`, else the one that the last question names, else the one named most
    recently before it; what the metrics read as a place is one here, too. Where a question names several, the first is
    the fact and the others are under `others`.
    """

    @hookimpl
    def keval_sample_facts(self, sample: Sample) -> Mapping[str, Any] | None:
        """Return `{"weather": {"city", "current", "daily_summaries"}}`; `others` where several are asked for.

        A city that the snapshot does not have gives `{"weather": {"city", "unknown": true}}`, no city `None`.
        """
        weather = None if "weather" in sample.facts else _weather(sample)
        return {"weather": weather} if weather else None


def _weather(sample: Sample) -> Mapping[str, Any] | None:
    if city := sample.metadata.get("city"):
        return _look_up(str(city)) or _unknown(str(city))
    for names in _named_latest_first(sample):
        known = [truth for name in names if (truth := _look_up(name))]
        if known:
            return {**known[0], "others": known[1:]} if len(known) > 1 else known[0]
        if names:
            return _unknown(names[0])
    return None


def _named_latest_first(sample: Sample) -> Iterator[Sequence[str]]:
    """Yield the places that each message names, the last message's first."""
    for text in reversed(sample.asked):
        yield places_in_question(text)
    for message in reversed(sample.history):
        if message.role == "user":
            yield places_in_question(message.text)
        elif message.role == "assistant":
            yield places_in_answer(message.text)


def _look_up(city: str) -> Mapping[str, Any] | None:
    snapshot = load_snapshot()
    try:
        current, forecast = snapshot.current(city), snapshot.forecast(city, MAX_DAYS)
    except UnknownCityError:
        return None
    return {
        "city": current["city"],
        "country": current["country"],
        "current": {field: value for field, value in current.items() if field in _CURRENT_FIELDS},
        "daily_summaries": [
            {field: value for field, value in day.items() if field in _DAILY_FIELDS} for day in forecast["days"]
        ],
        "source": "snapshot",
    }


def _unknown(city: str) -> Mapping[str, Any]:
    return {"city": city, "unknown": True}
