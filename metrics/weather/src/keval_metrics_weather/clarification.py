"""Clarification: does an answer rightly ask back before it answers."""

from __future__ import annotations

from keval import Trial
from keval_metrics_weather.advice import advice
from keval_metrics_weather.measurements import weather_data
from keval_metrics_weather.reading.phrases import affirmed
from keval_metrics_weather.queries import NO_LOCATION, gaps_left, query
from keval_metrics_weather.wording import CLARIFYING
from keval_metrics_weather.reading.words import Text, read

__all__ = ["asks_back", "only_asks_back", "unclear"]


def unclear(trial: Trial) -> tuple[str, ...]:
    """Return what the question leaves open, given what was said before it."""
    question = query(trial.question)
    return gaps_left(question, trial.history) if question.gaps else ()


def asks_back(trial: Trial, clarifying: tuple[str, ...]) -> bool:
    """Say whether the answer asks for the location that the question lacks."""
    return NO_LOCATION in unclear(trial) and bool(affirmed(read(trial.output), clarifying))


def only_asks_back(answer: Text, clarifying: tuple[str, ...] = CLARIFYING) -> bool:
    """Say whether an answer asks back and tells nothing: neither the weather nor what to do."""
    return bool(affirmed(answer, clarifying)) and weather_data(answer).start is None and not advice(answer).words
