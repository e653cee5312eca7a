"""Action planning: the right steps in the right order (metrics-assessment.md, Functional Performance 8)."""

from __future__ import annotations

import attrs

from keval import Score, ToolCall, Trial
from keval_metrics_weather.advice import advice
from keval_metrics_weather.clarification import asks_back
from keval_metrics_weather.measurements import weather_data
from keval_metrics_weather.phrases import affirmed
from keval_metrics_weather.queries import Query, query
from keval_metrics_weather.tally import Point, neutral, tally
from keval_metrics_weather.wording import CLARIFYING, FLOW, ITEMS, RECOMMENDING
from keval_metrics_weather.words import read

__all__ = ["ActionPlanning"]


@attrs.frozen
class ActionPlanning:
    """Adds points, from nothing, for weather data, for data before advice, for fitting tools and for words of order.

    Neutral when no weather was asked for and the answer has neither weather data nor advice nor tool calls, and when
    the answer must first ask for the location.
    """

    data_points: float = 0.3
    sequence_points: float = 0.3
    tool_points: float = 0.2
    flow_points: float = 0.1
    missing_penalty: float = 0.2
    sequence_penalty: float = 0.1
    flow_words: tuple[str, ...] = FLOW
    clarifying_phrases: tuple[str, ...] = CLARIFYING
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS

    def score(self, trial: Trial) -> Score:
        """Score the answer's structure and the last turn's tool calls."""
        answer = read(trial.output)
        question = query(trial.question)
        calls = _last_calls(trial)
        data = weather_data(answer)
        advised = advice(answer, self.recommending_words, self.items)
        if not (question.concerns_weather or calls or data.start is not None or advised.words):
            return neutral("no weather was asked for and nothing was planned")
        if not calls and data.start is None and asks_back(trial, self.clarifying_phrases):
            return neutral("the question names no location, and the answer asks for it")
        worked = tuple(call for call in calls if call.error is None)
        retrieved = bool(worked) or (not calls and data.start is not None)
        ordered = None
        if data.start is not None and advised.start is not None:
            ordered = data.start < advised.start
        fitting = tuple(dict.fromkeys(call.name for call in worked)) if _fits(question, worked, trial) else ()
        flow = affirmed(answer, self.flow_words)
        shown = tuple(dict.fromkeys(call.name for call in worked)) or (*data.measured, *data.spoken)
        return tally(
            0.0,
            (
                Point("weather data", self.data_points, shown) if retrieved else None,
                Point("weather before advice", self.sequence_points) if ordered else None,
                Point("fitting tools", self.tool_points, fitting) if fitting else None,
                Point("logical flow", self.flow_points, flow) if flow else None,
                Point("no weather data", -self.missing_penalty)
                if question.concerns_weather and not retrieved
                else None,
                Point("advice before weather", -self.sequence_penalty, advised.words[:1]) if ordered is False else None,
            ),
        )


def _last_calls(trial: Trial) -> tuple[ToolCall, ...]:
    made = trial.transcript.tool_calls if trial.transcript else ()
    return tuple(call for call in made if call.turn == len(trial.sample.turns))


def _fits(question: Query, worked: tuple[ToolCall, ...], trial: Trial) -> bool:
    """Say whether the calls that worked suit the question: a forecast needs a forecast tool, if one was offered."""
    offered = (trial.transcript.tools if trial.transcript else None) or ()
    if question.wants_forecast and any("forecast" in name for name in offered):
        return any("forecast" in call.name for call in worked)
    return bool(worked)
