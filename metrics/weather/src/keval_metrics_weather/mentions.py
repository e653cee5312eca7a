"""Mentions: the places that a message of a conversation brings up."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from keval import Message
from keval_metrics_weather.reading.asked_places import places_asked
from keval_metrics_weather.reading.names import Place
from keval_metrics_weather.reading.phrases import find
from keval_metrics_weather.reading.places import places_told
from keval_metrics_weather.reading.words import Text, read
from keval_metrics_weather.wording import CLARIFYING

__all__ = ["cities_mentioned"]

_EXAMPLES = ("for example", "for instance", "such as")
_NO_MENTION = (*CLARIFYING, *_EXAMPLES)
_SENTENCE_ENDS = (".", "!", "?", "\n")


def cities_mentioned(message: Message) -> tuple[Place, ...]:
    """Return the places a message is about; those that an assistant names to ask back or as examples are none."""
    text = read(message.text)
    return places_asked(text) if message.role == "user" else _cities_told(text)


@lru_cache(maxsize=64)
def _cities_told(text: Text) -> tuple[Place, ...]:
    cities = places_told(text)
    if not cities:
        return ()
    hits = [(text.starts[first], keyword in _EXAMPLES) for first, _, keyword in find(text, _NO_MENTION)]
    asking = {start for start, example in hits if not example} | _starts(text, "?")
    examples = {start for start, example in hits if example}
    if not (asking or examples):
        return cities
    ends = sorted(start for mark in _SENTENCE_ENDS for start in _starts(text, mark))
    sentences_asking = {bisect_left(ends, start) for start in asking}
    first_examples: dict[int, int] = {}
    for start in sorted(examples):
        first_examples.setdefault(bisect_left(ends, start), start)
    told = []
    for city in cities:
        sentence = bisect_left(ends, city.start)
        if sentence not in sentences_asking and city.start < first_examples.get(sentence, len(text.plain)):
            told.append(city)
    return tuple(told)


def _starts(text: Text, mark: str) -> set[int]:
    return {text.starts[place] for place in text.index.get(mark, ())}
