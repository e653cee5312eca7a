"""Context retention: what an answer remembers of the conversation (metrics-assessment.md, Functional Performance 4)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar

import attrs

from keval import Message, Scale, Score, Trial
from keval_metrics_weather.cities import City, cities_asked, cities_named, find_names
from keval_metrics_weather.days import NOW, day_mentions
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.phrases import affirmed, find
from keval_metrics_weather.preferences import preferences_stated
from keval_metrics_weather.queries import query
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.wording import AWARENESS
from keval_metrics_weather.words import Text, read

__all__ = ["ContextRetention"]

_CLOCK = re.compile(r"(\d(?<![\w:.]\d)\d?)(?::(\d{2}))? ?(?:([ap])\.?m\b|(?<=:\d\d)(?!\d)|o'clock\b)")
_PARTS_OF_DAY = frozenset({"morning", "noon", "afternoon", "evening", "tonight", "midnight"})


@attrs.frozen
class _Remembered:
    """What was mentioned: cities, the themes of stated preferences, days and times."""

    cities: tuple[City, ...]
    themes: tuple[tuple[str, ...], ...]
    times: frozenset[str]


@attrs.frozen
class ContextRetention:
    """Adds points when a city, a preference or a time of the conversation so far comes back in the answer.

    What the question leaves open and the conversation has told is missed when it does not. Neutral without a history,
    or when it mentions none of the three.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    city_points: float = not_negative(0.2)
    preference_points: float = not_negative(0.15)
    time_points: float = not_negative(0.15)
    city_penalty: float = not_negative(0.2)
    preference_penalty: float = not_negative(0.15)
    time_penalty: float = not_negative(0.15)
    awareness_phrases: tuple[str, ...] = AWARENESS

    def score(self, trial: Trial) -> Score:
        """Score the answer against `trial.history`."""
        history = trial.history
        if not history:
            return neutral("no history")
        known = _remembered(history)
        if not (known.cities or known.themes or known.times):
            return neutral("the history mentions no city, preference or time")
        answer = read(trial.output)
        question = query(trial.question)
        named = find_names(answer, [city.name for city in known.cities])
        cities = tuple([city.name for city in known.cities if city.name in named])
        aware = affirmed(answer, self.awareness_phrases) if known.themes else ()
        themes = tuple(word for words in known.themes for word in words if find(answer, (word,))) if aware else ()
        times = tuple(sorted(known.times & _times(answer))) if known.times else ()
        open_place = bool(known.cities) and not question.cities
        ignored_cities = tuple(city.name for city in known.cities) if open_place and not cities else ()
        ignored_themes = tuple(map(" ".join, known.themes)) if question.wants_advice and not themes else ()
        ignored_times = tuple(sorted(known.times)) if open_place and not question.days and not times else ()
        return tally(
            self.base,
            (
                ("city remembered", self.city_points, cities),
                ("preference acknowledged", self.preference_points, (*aware, *themes) if themes else ()),
                ("time remembered", self.time_points, times),
                ("city ignored", -self.city_penalty, ignored_cities),
                ("preference ignored", -self.preference_penalty, ignored_themes),
                ("time ignored", -self.time_penalty, ignored_times),
            ),
        )


def _remembered(history: tuple[Message, ...]) -> _Remembered:
    cities: dict[tuple[str, ...], City] = {}
    themes: dict[tuple[str, ...], None] = {}
    times: set[str] = set()
    for message in history:
        said = _mentions(message.text, message.role == "user")
        for city in said.cities:
            cities.setdefault(city.words, city)
        themes |= dict.fromkeys(said.themes)
        times |= said.times
    return _Remembered(tuple(cities.values()), tuple(themes), frozenset(times))


@lru_cache(maxsize=64)
def _mentions(message: str, by_user: bool) -> _Remembered:
    """Return what one message mentions; preferences and times are remembered of the user only."""
    text = read(message)
    if not by_user:
        return _Remembered(cities_named(text), (), frozenset())
    stated = preferences_stated(text)
    return _Remembered(
        cities_asked(text),
        tuple(preference.themes for preference in stated if preference.themes),
        frozenset(_times(text)),
    )


def _times(text: Text) -> set[str]:
    """Return the days and times of day that a text names, the present apart, in one spelling each."""
    days = {mention.day for mention in day_mentions(text) if mention.day != NOW}
    clock = {f"{int(hour)}:{minutes or '00'}{half or ''}" for hour, minutes, half in _CLOCK.findall(text.plain)}
    return days | clock | (_PARTS_OF_DAY & text.said)
