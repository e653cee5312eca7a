"""Turns: the last question of a trial with its answer, read once for all metrics."""

from __future__ import annotations

from functools import cached_property

import attrs

from keval import Message, Trial
from keval_metrics_weather.questions import NO_LOCATION, Query, clarifying, gaps_left, query, wants_forecast
from keval_metrics_weather.reading.asking import asking
from keval_metrics_weather.reading.statements import Reading, reading
from keval_metrics_weather.reading.times import NOW, PAST, SEVERAL, TODAY, TONIGHT
from keval_metrics_weather.reading.words import Text, read
from keval_metrics_weather.truth import Truth, truth_of


@attrs.frozen
class Asked:
    """Whether a question is about the present, and which days of the forecast it is about, as indices."""

    now: bool
    days: tuple[int, ...]
    ahead: bool = False
    """Whether it names a day to come."""


@attrs.frozen(eq=False, slots=False)
class Turn:
    """The last turn of a trial: its `question` after the `history`, and its `answer`.

    `request` is the question with what it takes over from the messages before it, and `gaps` what it leaves open after
    them, whatever the answer makes of it. `truth` is the weather that it is about, and `asked` what of that.
    """

    trial: Trial
    history: tuple[Message, ...]
    question: Query
    request: Query
    gaps: tuple[str, ...]
    answer: Text
    truth: Truth | None
    asked: Asked

    @classmethod
    def of(cls, trial: Trial) -> Turn:
        """Read a trial."""
        history, question, answer = trial.history, query(trial.question), read(trial.output)
        request = _request(question, history)
        gaps = gaps_left(question, history) if question.gaps else ()
        truth = truth_of(trial.sample.facts)
        return cls(trial, history, question, request, gaps, answer, truth, _asked(request, truth))

    @cached_property
    def reading(self) -> Reading:
        """What the answer says, read when it is first asked for."""
        names = dict.fromkeys([place.name for place in self.question.cities])
        if self.truth is not None and self.truth.city:
            names[self.truth.city] = None
        return reading(self.answer, names, self.question.fahrenheit)

    @property
    def is_of_something_else(self) -> bool:
        """Whether the question is about anything but the weather, a day, a place to be or what was said before."""
        asked = self.request
        if asked.concerns_weather or asked.days or asked.follows_up:
            return False
        return "?" in asked.text.said or not asked.cities

    def asks_back(self, phrases: tuple[str, ...]) -> bool:
        """Say whether the answer asks for the location or the time that the question lacks."""
        if NO_LOCATION in self.gaps:
            return bool(clarifying(self.answer, phrases))
        return bool(self.gaps) and bool(asking(self.answer))


_latest: list[Turn] = []
"""The turn that was read last, as all metrics score a trial before the next is scored."""


def turn_of(trial: Trial) -> Turn:
    """Return the last turn of a trial, the same for as long as no other is asked for."""
    for turn in _latest:
        if turn.trial is trial:
            return turn
    turn = Turn.of(trial)
    _latest[:] = [turn]
    return turn


def _request(question: Query, history: tuple[Message, ...]) -> Query:
    """Read a question; one that follows up takes over what it leaves out from the user's messages before it.

    Those are its days, and what is asked for if it does not say so itself: "Do I need an umbrella tomorrow?" and, when
    asked back, "In Edinburgh." The last message that stands by itself is the furthest back to look.
    """
    if not question.follows_up:
        return question
    days, forecast = question.days, question.wants_forecast
    weather, advice = question.about_weather, question.wants_advice
    open_request = not question.concerns_weather
    for message in reversed(history):
        if message.role != "user":
            continue
        before = query(message.text)
        if not question.days:
            days = days or before.days
            forecast = forecast or before.wants_forecast
        if open_request:
            weather, advice = weather or before.about_weather, advice or before.wants_advice
        if before.concerns_weather and not before.follows_up:
            break
    return question._replace(
        days=days, wants_forecast=wants_forecast(days) if days else forecast, about_weather=weather, wants_advice=advice
    )


def _asked(request: Query, truth: Truth | None) -> Asked:
    """Return what of the weather is asked about; nothing where it is not known.

    A question that names no day and goes on from none is about now, or about all days when it asks for a forecast or
    only those are known.
    """
    if truth is None:
        return Asked(False, ())
    if not request.days:
        everything = request.wants_forecast or (truth.temperature is None and not truth.conditions)
        ahead = "forecast" in request.text.said and len(truth.days) > 1
        return Asked(True, tuple(range(len(truth.days))) if everything else (0,), ahead)
    days = {index for day in request.days for index in truth.days_meant(day)}
    ahead = any(day not in (NOW, TODAY, TONIGHT, PAST) for day in request.days) and max(days, default=0) > 0
    return Asked(any(day in (NOW, TODAY, TONIGHT, SEVERAL) for day in request.days), tuple(sorted(days)), ahead)
