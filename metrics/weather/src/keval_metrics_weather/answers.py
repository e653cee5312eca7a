"""Answers: the reading of a trial's last answer, the same for all metrics."""

from __future__ import annotations

from keval import Trial
from keval_metrics_weather.queries import query
from keval_metrics_weather.reading.answer import Reading, reading
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.truth import truth_of

__all__ = ["answer_to"]


def answer_to(trial: Trial) -> Reading:
    """Read the answer, knowing which places it was asked about."""
    question = query(trial.question)
    names = [place.name for place in question.cities]
    truth = truth_of(trial.sample.facts)
    if truth is not None and truth.city:
        names.append(truth.city)
    return reading(read(trial.output), tuple(dict.fromkeys(names)), question.fahrenheit)
