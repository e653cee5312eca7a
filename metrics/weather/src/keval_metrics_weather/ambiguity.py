"""Ambiguity handling: what the answer makes of a vague question (metrics-assessment.md, Behavioral Quality 13)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.clarification import clarifying, unclear
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.queries import NO_LOCATION
from keval_metrics_weather.reading.asking import asking, assumed
from keval_metrics_weather.reading.measurements import weather_data
from keval_metrics_weather.reading.phrases import affirmed, find
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.wording import CLARIFYING, GUIDING

__all__ = ["AmbiguityHandling"]

_PLACE = ("city", "location", "place", "town", "where")


@attrs.frozen
class AmbiguityHandling:
    """Adds points for clarifying, sensible assumptions, help and guidance when the question is ambiguous.

    An answer with none of them is penalised. Neutral when the question is clear.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    clarification_points: float = not_negative(0.4)
    assumption_points: float = not_negative(0.3)
    helpful_points: float = not_negative(0.2)
    location_points: float = not_negative(0.2)
    guidance_points: float = not_negative(0.2)
    unhandled_penalty: float = not_negative(0.3)
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
        asked = clarifying(answer, self.clarifying_phrases)
        assuming = affirmed(answer, self.assuming_phrases) or assumed(answer)
        guiding = affirmed(answer, self.guiding_phrases)
        data = weather_data(answer)
        helpful = (*data.measured, *data.spoken)
        where = asked and NO_LOCATION in open_points and (asking(answer).place or find(answer, _PLACE))
        handled = asked or assuming or guiding or helpful
        return tally(
            self.base,
            (
                ("clarification asked for", self.clarification_points, asked),
                ("assumption made", self.assumption_points, assuming),
                ("helpful all the same", self.helpful_points, helpful),
                ("missing location asked for", self.location_points, bool(where)),
                ("guidance", self.guidance_points, guiding),
                ("ambiguity not handled", -self.unhandled_penalty, () if handled else open_points),
            ),
            answer,
            unclear=list(open_points),
        )
