"""Action planning: the right steps in the right order (metrics-assessment.md, Functional Performance 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.advice import advice
from keval_metrics_weather.calls import last_calls
from keval_metrics_weather.clarification import asks_back
from keval_metrics_weather.measurements import weather_data
from keval_metrics_weather.options import not_negative
from keval_metrics_weather.phrases import affirmed
from keval_metrics_weather.queries import Query, query
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.wording import CLARIFYING, FLOW, ITEMS, RECOMMENDING
from keval_metrics_weather.words import read

__all__ = ["ActionPlanning"]


@attrs.frozen
class ActionPlanning:
    """Adds points, from nothing, for weather data, for data before advice, for fitting tools and for words of order.

    Calls that are only counted retrieved data, but not by a fitting tool, as it is not known by which. Neutral when no
    weather was asked for and the answer has neither weather data nor advice nor tool calls, and when the answer must
    first ask for the location.
    """

    scale: ClassVar[Scale] = SCALE

    data_points: float = not_negative(0.3)
    sequence_points: float = not_negative(0.3)
    tool_points: float = not_negative(0.2)
    flow_points: float = not_negative(0.1)
    missing_penalty: float = not_negative(0.2)
    sequence_penalty: float = not_negative(0.1)
    flow_words: tuple[str, ...] = FLOW
    clarifying_phrases: tuple[str, ...] = CLARIFYING
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS

    def score(self, trial: Trial) -> Score:
        """Score the answer's structure and the last turn's tool calls."""
        answer = read(trial.output)
        question = query(trial.question)
        calls = last_calls(trial)
        data = weather_data(answer)
        advised = advice(answer, self.recommending_words, self.items)
        if not (question.concerns_weather or calls.known or data.start is not None or advised.words):
            return neutral("no weather was asked for and nothing was planned")
        if not calls.known and data.start is None and asks_back(trial, self.clarifying_phrases):
            return neutral("the question names no location, and the answer asks for it")
        names = tuple(dict.fromkeys([call.name for call in calls.worked]))
        retrieved = bool(names or calls.only_counted) or (calls.may_have_worked and data.start is not None)
        ordered = None
        if data.start is not None and advised.start is not None:
            ordered = data.start < advised.start
        fitting = names if _fits(question, names, trial) else ()
        flow = affirmed(answer, self.flow_words)
        shown = names or (*data.measured, *data.spoken)
        return tally(
            0.0,
            (
                ("weather data", self.data_points, retrieved and (shown or True)),
                ("weather before advice", self.sequence_points, ordered is True),
                ("fitting tools", self.tool_points, fitting),
                ("logical flow", self.flow_points, flow),
                ("no weather data", -self.missing_penalty, question.concerns_weather and not retrieved),
                ("advice before weather", -self.sequence_penalty, ordered is False and advised.words[:1]),
            ),
            only_counted=calls.only_counted,
        )


def _fits(question: Query, worked: Sequence[str], trial: Trial) -> bool:
    """Say whether the tools that worked suit the question: a forecast needs a forecast tool, if one was offered."""
    offered = (trial.transcript.tools if trial.transcript else None) or ()
    if question.wants_forecast and any("forecast" in name for name in offered):
        return any("forecast" in name for name in worked)
    return bool(worked)
