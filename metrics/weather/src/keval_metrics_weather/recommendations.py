"""Recommendation quality: how useful the advice is (metrics-assessment.md, Functional Performance 3)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.clarification import asks_back
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.reading.advice import Advice, advice, advice_against, reasons_given
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.phrases import affirmed
from keval_metrics_weather.reading.words import Text, read
from keval_metrics_weather.request import request
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.wording import CLARIFYING, ERRORS, INDOOR, ITEMS, MISSING, OUTDOOR, REASONS, RECOMMENDING

__all__ = ["RecommendationQuality"]

_GOING = (*INDOOR, *OUTDOOR)
_NO = frozenset({"no", "nope"})
_MARKS = frozenset(",.!;:—–-\n")


@attrs.frozen
class RecommendationQuality:
    """Adds points for specific items, for reasons and for several recommendations.

    Several are `several` different recommending words or items. What is advised against ("No, you won't need an
    umbrella.") is advice where it was asked for and nothing is recommended. Neutral when advice was neither asked for
    nor given, and when the answer must first ask for the location.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    items_points: float = not_negative(0.2)
    reasons_points: float = not_negative(0.2)
    several_points: float = not_negative(0.1)
    several: int = not_negative(3)
    missing_penalty: float = not_negative(0.3)
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS
    reason_words: tuple[str, ...] = REASONS
    clarifying_phrases: tuple[str, ...] = CLARIFYING

    def score(self, trial: Trial) -> Score:
        """Score the recommendations of the answer."""
        answer = read(trial.output)
        given = advice(answer, self.recommending_words, self.items)
        if not given.given:
            if not request(trial).wants_advice:
                return neutral("no recommendation was asked for and none given")
            if asks_back(trial, self.clarifying_phrases):
                return neutral("the question names no location, and the answer asks for it")
            given = advice_against(answer, self.recommending_words, self.items)
            if not (given.given or _says_no(answer)):
                return tally(self.base, [("no recommendation, though one was asked for", -self.missing_penalty, True)])
        return self._tally(answer, given)

    def _tally(self, answer: Text, given: Advice) -> Score:
        reasons = reasons_given(answer, self.reason_words)
        acts = [act for act in given.acts if act not in given.words]
        activities = affirmed(answer, _GOING) if acts or given.words else ()
        count = max(len(given.words), len(given.items) + len(activities) if given.items else 0)
        return tally(
            self.base,
            (
                ("specific items", self.items_points, given.items),
                ("reasons", self.reasons_points, reasons),
                (
                    f"{count} recommendations",
                    self.several_points,
                    count >= self.several and (*given.words, *activities),
                ),
            ),
            answer,
            recommendations=list(map(str, given.words or given.acts)),
        )


def _says_no(answer: Text) -> bool:
    """Say whether an answer begins with a plain "No": "No, it stays dry." but not "No idea." or "No, I couldn't …"."""
    if answer.word_at(0) not in _NO or not (answer.word_at(1) in _MARKS or len(answer.words) == 1):
        return False
    return not failures(answer, ERRORS, MISSING).told
