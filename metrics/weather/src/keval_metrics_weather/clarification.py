"""Clarification: does an answer rightly ask back before it answers."""

from __future__ import annotations

from keval import Trial
from keval_metrics_weather.phrases import affirmed
from keval_metrics_weather.queries import gaps, query
from keval_metrics_weather.words import read

__all__ = ["asks_back", "unclear"]


def unclear(trial: Trial) -> tuple[str, ...]:
    """Return what the question leaves open, given what was said before it."""
    return gaps(query(trial.question), (message.text for message in trial.history))


def asks_back(trial: Trial, clarifying: tuple[str, ...]) -> bool:
    """Say whether the answer asks for the location that the question lacks."""
    return bool(affirmed(read(trial.output), clarifying)) and "no location" in unclear(trial)
