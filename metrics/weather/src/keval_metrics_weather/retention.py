"""Context retention: scores what an answer remembers of the conversation (metrics-assessment.md, 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count

import attrs

from keval import Message, Score, Trial
from keval_metrics_weather.preferences import acknowledged, preferences_stated
from keval_metrics_weather.questions import NO_LOCATION, Query, ask_alike, cities_mentioned, query
from keval_metrics_weather.reading.asking import asking
from keval_metrics_weather.reading.gazetteer import Place
from keval_metrics_weather.reading.places import find_names
from keval_metrics_weather.reading.statements import weather_data
from keval_metrics_weather.reading.times import (
    NOW,
    PARTS_OF_DAY,
    SEVERAL,
    TODAY,
    TONIGHT,
    day_name,
    times,
    times_of_day,
)
from keval_metrics_weather.reading.words import Said, Text, find, read, roots
from keval_metrics_weather.scores import FunctionalPerformance, neutral, tally
from keval_metrics_weather.turns import turn_of
from keval_metrics_weather.wording import AWARENESS, ITEMS, OUTDOOR

_INCLUDING_THE_PRESENT = frozenset({TODAY, SEVERAL})
_HOW_IT_IS = (
    "it like", "it be like", "how is it", "how it", "how will it", "over there", "out there", "can we", "could we",
)  # fmt: skip
_DEPENDING_ON_WEATHER = (*ITEMS, *OUTDOOR, *_HOW_IT_IS)
_RECALLING = ("remember", "recall", "did i", "i said", "i told", "i mentioned")

_REPEATED = 0.5
"""The share of common keywords from which a question is one that was asked before."""


@attrs.frozen
class _Remembered:
    """What was mentioned: cities, the themes of preferences that still hold, days and times, and the latest of them."""

    cities: tuple[Place, ...]
    themes: tuple[tuple[str, ...], ...]
    times: frozenset[str]
    latest: frozenset[str]


@attrs.frozen
class ContextRetention(FunctionalPerformance):
    """Adds points when a city, a preference or a time of the conversation so far comes back in the answer.

    What the question leaves open and the conversation has told is missed when it does not. A message that wants none
    of it ("Thank you, that's all.") misses nothing. Neutral without a history, when it mentions none of the three, and
    when nothing of it was wanted and none came back.
    """

    def score(self, trial: Trial) -> Score:
        """Score the answer against the history."""
        turn = turn_of(trial)
        history, question, answer = turn.history, turn.question, turn.answer
        if not history:
            return neutral("no history")
        known = _remembered(history)
        if not (known.cities or known.themes or known.times):
            return neutral("the history mentions no city, preference or time")
        named = find_names(answer, [city.name for city in known.cities])
        cities = tuple(
            [Said.from_offset(answer, named[city.name][0], city.name) for city in known.cities if city.name in named]
        )
        aware = acknowledged(answer, AWARENESS) if known.themes else ()
        themes = _themes_told(answer, known.themes) if aware else ()
        kept = known.times & _times(answer) if known.times else frozenset()
        if not question.follows_up:  # "Good morning!" and "in the morning" are in many answers
            kept -= PARTS_OF_DAY
        wanting = _draws_on_history(question)
        if not (wanting or cities or themes or kept):
            return neutral("the message wants nothing that the history tells")
        if not cities and NO_LOCATION in turn.gaps and asking(answer).place:
            return neutral("the question names no location, and the answer asks for it")
        open_place = wanting and bool(known.cities) and not question.cities
        ignored_cities = tuple(city.name for city in known.cities) if open_place and not cities else ()
        ignored_themes = tuple(map(" ".join, known.themes)) if turn.request.wants_advice and not themes else ()
        asks_of_a_time = question.days or times_of_day(question.text)
        due = frozenset(turn.request.days) or (known.latest if open_place else frozenset())
        ignored_times = _ignored(due, question, answer, history) if due and not (asks_of_a_time or kept) else ()
        return tally(
            (
                ("city remembered", 0.2, cities),
                ("preference acknowledged", 0.15, (*aware, *themes) if themes else ()),
                ("time remembered", 0.15, _times_told(answer, kept)),
                ("city ignored", -0.2, ignored_cities),
                ("preference ignored", -0.15, ignored_themes),
                ("time ignored", -0.15, ignored_times),
            ),
            answer,
        )


def _draws_on_history(question: Query) -> bool:
    """Say whether a message is about the weather, goes on from what was said or asks for it.

    A question of a day, of clothing, of going out or of how it is ("Will I need gloves?") is about the weather.
    """
    if question.concerns_weather or question.follows_up or find(question.text, _RECALLING):
        return True
    return "?" in question.text.said and bool(question.days or find(question.text, _DEPENDING_ON_WEATHER))


@lru_cache(maxsize=64)
def _remembered(history: tuple[Message, ...]) -> _Remembered:
    """Return what the conversation has told; preferences and times are remembered of the user only."""
    cities: dict[tuple[str, ...], Place] = {}
    stated: dict[tuple[str, ...], int] = {}
    taken_back: dict[str, int] = {}
    steps = count()
    times: frozenset[str] = frozenset()
    latest = times
    for message in history:
        for city in cities_mentioned(message):
            cities.setdefault(city.words, city)
        if message.role != "user":
            continue
        text = read(message.text)
        for preference in preferences_stated(text):
            step = next(steps)
            if preference.taken_back:
                taken_back |= dict.fromkeys((root for word in preference.themes for root in roots(word)), step)
            else:
                stated[preference.themes] = step
        named = _times(text)
        times |= named
        latest = named or latest
    themes = _holding(stated, taken_back) if taken_back else stated
    return _Remembered(tuple(cities.values()), tuple(filter(None, themes)), times - {NOW}, latest - {NOW})


def _holding(stated: Mapping[tuple[str, ...], int], taken_back: Mapping[str, int]) -> Iterable[tuple[str, ...]]:
    """Leave out the themes that were taken back after they were last stated."""
    for words, step in stated.items():
        yield tuple([word for word in words if all(taken_back.get(root, -1) < step for root in roots(word))])


@lru_cache(maxsize=64)
def _times(text: Text) -> frozenset[str]:
    """Return the days and times of day that a text names, in one spelling each."""
    hours = times_of_day(text)
    days = {time.day for time in times(text)} - ({TONIGHT} if hours & PARTS_OF_DAY else set())
    return hours | days


def _ignored(due: frozenset[str], question: Query, answer: Text, history: tuple[Message, ...]) -> tuple[str, ...]:
    """Return the times that an answer should have kept to.

    Those are none that include the present, if the answer is about it, and none at all for a question asked again that
    named no time before.
    """
    missed = due - ({NOW} | _INCLUDING_THE_PRESENT if _is_about_now(answer) else {NOW})
    if not missed or question.follows_up:
        return _listed(missed)
    repeated = any(ask_alike(question, query(m.text), _REPEATED) for m in history if m.role == "user")
    return () if repeated else _listed(missed)


def _is_about_now(answer: Text) -> bool:
    """Say whether an answer tells the present weather, in words ("right now") or by telling of no other day."""
    times = _times(answer)
    return NOW in times or (times <= PARTS_OF_DAY and weather_data(answer).start is not None)


def _themes_told(answer: Text, themes: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words of preferences that an answer says, in any inflection."""
    hits = [(word, find(answer, roots(word))) for words in themes for word in words]
    return tuple([Said.at(answer, *found[0][:2], word) for word, found in hits if found])


def _times_told(answer: Text, kept: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the times that an answer keeps to, and where it names them; clock times stand nowhere."""
    if not kept:
        return ()
    starts = {time.day: time.start for time in reversed(times(answer))}
    starts |= {word: answer.starts[answer.index[word][0]] for word in kept & answer.said}
    return tuple(
        [
            Said.from_offset(answer, starts[time], name) if time in starts else name
            for time, name in zip(sorted(kept), _listed(kept), strict=True)
        ]
    )


def _listed(times: frozenset[str]) -> tuple[str, ...]:
    return tuple([day_name(time) for time in sorted(times)])
