"""Task completion: was the request carried out (metrics-assessment.md, Functional Performance 2)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.clarification import only_asks_back
from keval_metrics_weather.options import not_negative, share
from keval_metrics_weather.reading.advice import advice
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.measurements import weather_data
from keval_metrics_weather.reading.phrases import find
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.request import request
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import tally
from keval_metrics_weather.wording import ERRORS, ITEMS, MISSING, RECOMMENDING, WEATHER

__all__ = ["TaskCompletion"]


@attrs.frozen
class TaskCompletion:
    """Adds points for figures, recommendations and substance; takes some off for errors and missing information.

    An answer is substantial from `substantial` characters on, and too short below `shortest`.
    """

    scale: ClassVar[Scale] = SCALE

    base: float = share(0.5)
    numbers_points: float = not_negative(0.2)
    recommendation_points: float = not_negative(0.2)
    length_points: float = not_negative(0.1)
    substantial: int = not_negative(80)
    shortest: int = not_negative(20)
    error_penalty: float = not_negative(0.3)
    short_penalty: float = not_negative(0.2)
    off_topic_penalty: float = not_negative(0.2)
    error_words: tuple[str, ...] = ERRORS
    missing_words: tuple[str, ...] = MISSING
    weather_words: tuple[str, ...] = WEATHER
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS

    def score(self, trial: Trial) -> Score:
        """Score the answer's text against what the question wants."""
        answer = read(trial.output)
        length = len(answer.original.strip())
        data = weather_data(answer)
        advised = advice(answer, self.recommending_words, self.items).given
        failing = failures(answer, self.error_words, self.missing_words).told
        on_topic = data.measured or data.spoken or advised or find(answer, self.weather_words) or only_asks_back(answer)
        wanted = request(trial).about_weather
        return tally(
            self.base,
            (
                ("figures", self.numbers_points, data.measured),
                ("recommendations", self.recommendation_points, advised),
                (f"substance, {length} characters", self.length_points, length >= self.substantial),
                ("error or missing information", -self.error_penalty, failing),
                (f"only {length} characters", -self.short_penalty, length < self.shortest),
                ("nothing about the weather", -self.off_topic_penalty, wanted and not on_topic),
            ),
            answer,
            characters=length,
        )
