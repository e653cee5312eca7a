"""Places: which places a question asks about and an answer names, for whoever must find the same as the metrics."""

from __future__ import annotations

from keval_metrics_weather.reading.asked_places import places_asked
from keval_metrics_weather.reading.places import places_told
from keval_metrics_weather.reading.words import read

__all__ = ["places_in_answer", "places_in_question"]


def places_in_question(text: str) -> tuple[str, ...]:
    """Return the names of the places that a user's message asks about, as it spells them, each once."""
    return tuple(dict.fromkeys([place.name for place in places_asked(read(text))]))


def places_in_answer(text: str) -> tuple[str, ...]:
    """Return the names of the places that an assistant's message is about, as it spells them, each once."""
    return tuple(dict.fromkeys([place.name for place in places_told(read(text))]))
