"""Asked: which moments of the known weather a trial's question is about."""

from __future__ import annotations

import attrs

from keval import Trial
from keval_metrics_weather.reading.times import NOW, SEVERAL, TODAY, TONIGHT
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

    A question that names no day and goes on from none is about now, or about all days when it asks for a forecast or
    only those are known.
    """
    question = request(trial)
    if not question.days:
        everything = question.wants_forecast or (truth.temperature is None and not truth.conditions)
        return Asked(True, tuple(range(len(truth.days))) if everything else (0,))
    days = {index for day in question.days for index in truth.days_meant(day)}
    return Asked(any(day in (NOW, TODAY, TONIGHT, SEVERAL) for day in question.days), tuple(sorted(days)))
