"""Clarification: what a question leaves open, and whether an answer rightly asks back before it answers."""

from __future__ import annotations

from keval import Trial
from keval_metrics_weather.mentions import cities_mentioned
from keval_metrics_weather.queries import NO_LOCATION, NO_TIME, SEVERAL_PLACES, gaps_left, query
from keval_metrics_weather.reading.advice import advice
from keval_metrics_weather.reading.asking import asking, assumed
from keval_metrics_weather.reading.measurements import weather_data
from keval_metrics_weather.reading.phrases import affirmed
from keval_metrics_weather.reading.words import Text, read
from keval_metrics_weather.wording import CLARIFYING, ITEMS, RECOMMENDING

__all__ = ["asks_back", "clarifying", "only_asks_back", "unclear"]


def unclear(trial: Trial) -> tuple[str, ...]:
    """Return what the question leaves open.

    A place that was named before settles a new question that names none only where the answer takes it so: not where
    it asks for the place, or says which one it assumes.
    """
    question = query(trial.question)
    gaps = gaps_left(question, trial.history) if question.gaps else ()
    if question.courtesy:
        return gaps
    answer = read(trial.output)
    asks = asking(answer)
    found = dict.fromkeys(gaps)
    open_place = not question.cities and (not question.follows_up or not trial.history)
    if open_place and question.follows_up and any(cities_mentioned(message) for message in trial.history):
        open_place = False
    if open_place and (asks.place or (question.concerns_weather and assumed(answer))):
        found[NO_LOCATION] = None
    if asks.time and not question.days and not question.follows_up and question.concerns_weather:
        found[NO_TIME] = None
    if asks.several and question.cities:
        found[SEVERAL_PLACES] = None
    return tuple(found)


def clarifying(answer: Text, phrases: tuple[str, ...] = CLARIFYING) -> tuple[str, ...]:
    """Return the words by which an answer asks back."""
    return tuple(dict.fromkeys((*asking(answer).found, *affirmed(answer, phrases))))


def asks_back(trial: Trial, phrases: tuple[str, ...]) -> bool:
    """Say whether the answer asks for the location or the time that the question lacks."""
    gaps = unclear(trial)
    if NO_LOCATION in gaps:
        return bool(clarifying(read(trial.output), phrases))
    return bool(gaps) and bool(asking(read(trial.output)))


def only_asks_back(answer: Text, phrases: tuple[str, ...] = CLARIFYING) -> bool:
    """Say whether an answer asks back and tells nothing: neither the weather nor what to do."""
    return (
        bool(clarifying(answer, phrases))
        and weather_data(answer).start is None
        and not advice(answer, RECOMMENDING, ITEMS).given
    )
