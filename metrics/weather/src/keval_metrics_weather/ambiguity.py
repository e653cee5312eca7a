"""Ambiguity handling: what the answer makes of a vague question (metrics-assessment.md, Behavioral Quality 13)."""

from __future__ import annotations

import attrs

from keval import Score, Trial
from keval_metrics_weather.clarification import unclear
from keval_metrics_weather.measurements import weather_data
from keval_metrics_weather.phrases import affirmed, find
from keval_metrics_weather.tally import Point, neutral, tally
from keval_metrics_weather.wording import CLARIFYING, GUIDING
from keval_metrics_weather.words import read

__all__ = ["AmbiguityHandling"]

_PLACE = ("city", "location", "place", "town", "where")


@attrs.frozen
class AmbiguityHandling:
    """Adds points for clarifying, sensible assumptions, help and guidance when the question is ambiguous.

    An answer with none of them is penalised. Neutral when the question is clear.
    """

    base: float = 0.5
    clarification_points: float = 0.4
    assumption_points: float = 0.3
    helpful_points: float = 0.2
    location_points: float = 0.2
    guidance_points: float = 0.2
    unhandled_penalty: float = 0.3
    clarifying_phrases: tuple[str, ...] = CLARIFYING
    assuming_phrases: tuple[str, ...] = (
        "assume",
        "assuming",
        "presumably",
        "if you mean",
        "based on your last",
        "your usual",
    )
    guiding_phrases: tuple[str, ...] = GUIDING

    def score(self, trial: Trial) -> Score:
        """Score how the answer handles what the question leaves open."""
        open_points = unclear(trial)
        if not open_points:
            return neutral("the question is clear")
        answer = read(trial.output)
        clarifying = affirmed(answer, self.clarifying_phrases)
        assuming = affirmed(answer, self.assuming_phrases)
        guiding = affirmed(answer, self.guiding_phrases)
        data = weather_data(answer)
        helpful = (*data.measured, *data.spoken)
        where = clarifying and "no location" in open_points and find(answer, _PLACE)
        handled = clarifying or assuming or guiding or helpful
        return tally(
            self.base,
            (
                Point("clarification asked for", self.clarification_points, clarifying) if clarifying else None,
                Point("assumption made", self.assumption_points, assuming) if assuming else None,
                Point("helpful all the same", self.helpful_points, helpful) if helpful else None,
                Point("missing location asked for", self.location_points) if where else None,
                Point("guidance", self.guidance_points, guiding) if guiding else None,
                Point("ambiguity not handled", -self.unhandled_penalty, open_points) if not handled else None,
            ),
            unclear=list(open_points),
        )
