"""Asked: which moments of the known weather a trial's question is about."""

from __future__ import annotations

import attrs

from keval import Trial
from keval_metrics_weather.days import NOW, SEVERAL, TODAY
from keval_metrics_weather.request import request
from keval_metrics_weather.truth import Truth

__all__ = ["Asked", "asked"]


@attrs.frozen
class Asked:
    """Whether a question is about the present, and which days of the forecast it is about, as indices."""

    now: bool
    days: tuple[int, ...]


def asked(trial: Trial, truth: Truth) -> Asked:
    """Return what the question is about.

    A question that names no day and goes on from none is about now, or about all days when it asks for a forecast.
    """
    question = request(trial)
    if not question.days:
        return Asked(True, tuple(range(len(truth.days))) if question.wants_forecast else (0,))
    days = {index for day in question.days for index in truth.days_meant(day)}
    return Asked(any(day in (NOW, TODAY, SEVERAL) for day in question.days), tuple(sorted(days)))
