"""Recommendation quality: how useful the advice is (metrics-assessment.md, Functional Performance 3)."""

from __future__ import annotations

import attrs

from keval import Score, Trial
from keval_metrics_weather.advice import advice, reasons_given
from keval_metrics_weather.clarification import asks_back
from keval_metrics_weather.queries import query
from keval_metrics_weather.tally import Point, neutral, tally
from keval_metrics_weather.wording import CLARIFYING, ITEMS, REASONS, RECOMMENDING
from keval_metrics_weather.words import read

__all__ = ["RecommendationQuality"]


@attrs.frozen
class RecommendationQuality:
    """Adds points for specific items, for reasons and for several recommendations.

    Several are `several` different recommending words or items. Neutral when advice was neither asked for nor given,
    and when the answer must first ask for the location.
    """

    base: float = 0.5
    items_points: float = 0.2
    reasons_points: float = 0.2
    several_points: float = 0.1
    several: int = 3
    missing_penalty: float = 0.3
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS
    reason_words: tuple[str, ...] = REASONS
    clarifying_phrases: tuple[str, ...] = CLARIFYING

    def score(self, trial: Trial) -> Score:
        """Score the recommendations of the answer."""
        answer = read(trial.output)
        given = advice(answer, self.recommending_words, self.items)
        if not given.words:
            if not query(trial.question).wants_advice:
                return neutral("no recommendation was asked for and none given")
            if asks_back(trial, self.clarifying_phrases):
                return neutral("the question names no location, and the answer asks for it")
            return tally(self.base, [Point("no recommendation, though one was asked for", -self.missing_penalty)])
        reasons = reasons_given(answer, self.reason_words)
        count = len(given.words)
        return tally(
            self.base,
            (
                Point("specific items", self.items_points, given.items) if given.items else None,
                Point("reasons", self.reasons_points, reasons) if reasons else None,
                Point(f"{count} recommendations", self.several_points, given.words) if count >= self.several else None,
            ),
            recommendations=list(given.words),
        )
