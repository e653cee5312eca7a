"""Context retention: what an answer remembers of the conversation (metrics-assessment.md, Functional Performance 4)."""

from __future__ import annotations

import re

import attrs

from keval import Score, Trial
from keval_metrics_weather.cities import cities_asked, cities_named, find_name
from keval_metrics_weather.days import NOW, day_mentions
from keval_metrics_weather.phrases import affirmed, find
from keval_metrics_weather.preferences import preferences_stated
from keval_metrics_weather.queries import query
from keval_metrics_weather.tally import Point, neutral, tally
from keval_metrics_weather.wording import AWARENESS
from keval_metrics_weather.words import Text, read

__all__ = ["ContextRetention"]

_CLOCK = re.compile(r"(\d(?<![\w:.]\d)\d?)(?::(\d{2}))? ?(?:([ap])\.?m\b|(?<=:\d\d)(?!\d)|o'clock\b)")
_PARTS_OF_DAY = ("morning", "noon", "afternoon", "evening", "tonight", "midnight")


@attrs.frozen
class _Remembered:
    """What a history mentions: cities as written, the themes of stated preferences, days and times."""

    cities: tuple[str, ...]
    themes: tuple[tuple[str, ...], ...]
    times: frozenset[str]


@attrs.frozen
class ContextRetention:
    """Adds points when a city, a preference or a time of the conversation so far comes back in the answer.

    What the question leaves open and the conversation has told is missed when it does not. Neutral without a history,
    or when it mentions none of the three.
    """

    base: float = 0.5
    city_points: float = 0.2
    preference_points: float = 0.15
    time_points: float = 0.15
    city_penalty: float = 0.2
    preference_penalty: float = 0.15
    time_penalty: float = 0.15
    awareness_phrases: tuple[str, ...] = AWARENESS

    def score(self, trial: Trial) -> Score:
        """Score the answer against `trial.history`."""
        if not trial.history:
            return neutral("no history")
        known = _remembered(trial)
        if not (known.cities or known.themes or known.times):
            return neutral("the history mentions no city, preference or time")
        answer = read(trial.output)
        question = query(trial.question)
        cities = tuple(city for city in known.cities if find_name(answer, city))
        aware = affirmed(answer, self.awareness_phrases) if known.themes else ()
        themes = tuple(word for words in known.themes for word in words if find(answer, (word,))) if aware else ()
        times = tuple(sorted(known.times & _times(answer)))
        open_place = bool(known.cities) and not question.cities
        follows_up = open_place and not question.days
        return tally(
            self.base,
            (
                Point("city remembered", self.city_points, cities) if cities else None,
                Point("preference acknowledged", self.preference_points, (*aware, *themes)) if themes else None,
                Point("time remembered", self.time_points, times) if times else None,
                Point("city ignored", -self.city_penalty, known.cities) if open_place and not cities else None,
                Point("preference ignored", -self.preference_penalty, tuple(map(" ".join, known.themes)))
                if known.themes and not themes and question.wants_advice
                else None,
                Point("time ignored", -self.time_penalty, tuple(sorted(known.times)))
                if known.times and not times and follows_up
                else None,
            ),
        )


def _remembered(trial: Trial) -> _Remembered:
    cities: dict[str, str] = {}
    themes: dict[tuple[str, ...], None] = {}
    times: set[str] = set()
    for message in trial.history:
        text = read(message.text)
        said_by_user = message.role == "user"
        for city in cities_asked(text) if said_by_user else cities_named(text):
            cities.setdefault(" ".join(city.words), city.name)
        if said_by_user:
            themes |= dict.fromkeys(stated.themes for stated in preferences_stated(text) if stated.themes)
            times |= _times(text)
    return _Remembered(tuple(cities.values()), tuple(themes), frozenset(times))


def _times(text: Text) -> set[str]:
    """Return the days and times of day that a text names, the present apart, in one spelling each."""
    days = {mention.day for mention in day_mentions(text) if mention.day != NOW}
    clock = {f"{int(hour)}:{minutes or '00'}{half or ''}" for hour, minutes, half in _CLOCK.findall(text.plain)}
    return days | clock | {part for part in _PARTS_OF_DAY if part in text.index}
