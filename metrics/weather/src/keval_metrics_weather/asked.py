"""Asked: which moments of the known weather a trial's question is about."""

from __future__ import annotations

import attrs

from keval import Trial
from keval_metrics_weather.days import NOW, SEVERAL, TODAY
from keval_metrics_weather.queries import Query, query
from keval_metrics_weather.truth import Truth

__all__ = ["Asked", "asked"]


@attrs.frozen
class Asked:
    """Whether a question is about the present, and which days of the forecast it is about, as indices."""

    now: bool
    days: tuple[int, ...]


def asked(trial: Trial, truth: Truth) -> Asked:
    """Return what the question is about.

    A question that names no day is about now, or about all days when it asks for a forecast; a follow-up ("And in
    London?") is about the days of the user's message before it.
    """
    question = query(trial.question)
    named = question.days or _inherited(trial, question)
    if not named:
        return Asked(True, tuple(range(len(truth.days))) if question.wants_forecast else (0,))
    days = {index for day in named for index in truth.days_meant(day)}
    return Asked(any(day in (NOW, TODAY, SEVERAL) for day in named), tuple(sorted(days)))


def _inherited(trial: Trial, question: Query) -> tuple[str, ...]:
    if not question.follows_up:
        return ()
    said = next((message.text for message in reversed(trial.history) if message.role == "user"), "")
    return query(said).days
