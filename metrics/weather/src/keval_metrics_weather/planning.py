"""Action planning: the right steps in the right order (metrics-assessment.md, Functional Performance 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.calls import last_calls, on_preferences
from keval_metrics_weather.clarification import asks_back, only_asks_back
from keval_metrics_weather.options import not_negative
from keval_metrics_weather.queries import Query
from keval_metrics_weather.reading.advice import Advice, advice, flow_of
from keval_metrics_weather.reading.measurements import WeatherData, weather_data
from keval_metrics_weather.reading.words import Text, read
from keval_metrics_weather.request import request
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral, tally
from keval_metrics_weather.wording import CLARIFYING, FLOW, ITEMS, RECOMMENDING

__all__ = ["ActionPlanning"]

_DIRECT = frozenset({"yes", "no", "yeah", "yep", "nope"})
_MARKS = frozenset(",.!;:—–-")
_SENTENCE_ENDS = frozenset(".!?\n")


@attrs.frozen
class ActionPlanning:
    """Adds points, from nothing, for weather data, for data before advice, for fitting tools and for words of order.

    A direct answer ("Yes, take an umbrella.") may come first. Calls that are only counted retrieved data, but not by a
    fitting tool, as it is not known by which. Tools are those of `data_tools`, words that a tool's name contains; what
    others return is no weather data. Neutral when no weather was asked for and the answer has neither weather data nor
    advice nor calls of such tools, and when the answer must first ask for the location.
    """

    scale: ClassVar[Scale] = SCALE

    data_points: float = not_negative(0.3)
    sequence_points: float = not_negative(0.3)
    tool_points: float = not_negative(0.2)
    flow_points: float = not_negative(0.1)
    missing_penalty: float = not_negative(0.2)
    sequence_penalty: float = not_negative(0.1)
    data_tools: tuple[str, ...] = ("weather", "forecast")
    flow_words: tuple[str, ...] = FLOW
    clarifying_phrases: tuple[str, ...] = CLARIFYING
    recommending_words: tuple[str, ...] = RECOMMENDING
    items: tuple[str, ...] = ITEMS

    def score(self, trial: Trial) -> Score:
        """Score the answer's structure and the last turn's tool calls."""
        answer = read(trial.output)
        question = request(trial)
        calls = last_calls(trial)
        data = weather_data(answer)
        advised = advice(answer, self.recommending_words, self.items)
        planned = bool(calls.only_counted) or any(self._gets_data(call.name) for call in calls.listed)
        if not (question.concerns_weather or planned or data.start is not None or advised.given):
            return neutral("no weather was asked for and nothing was planned")
        if not planned and data.start is None and asks_back(trial, self.clarifying_phrases):
            return neutral("the question names no location, and the answer asks for it")
        names = tuple(dict.fromkeys([call.name for call in calls.worked if self._gets_data(call.name)]))
        retrieved = bool(names or calls.only_counted) or (calls.may_have_worked and data.start is not None)
        ordered = _ordered(data, advised)
        if ordered is False and answer.words[0] in _DIRECT and answer.word_at(1) in _MARKS:
            rest = _after_first_sentence(answer)
            ordered = _ordered(weather_data(rest), advice(rest, self.recommending_words, self.items))
        fitting = names if _fits(question, names, trial) else ()
        flow = flow_of(answer, self.flow_words)
        shown = names or (*data.measured, *data.spoken)
        return tally(
            0.0,
            (
                ("weather data", self.data_points, retrieved and (shown or True)),
                ("weather before advice", self.sequence_points, ordered is True),
                ("fitting tools", self.tool_points, fitting),
                ("logical flow", self.flow_points, flow if flow and not only_asks_back(answer) else ()),
                ("no weather data", -self.missing_penalty, question.concerns_weather and not retrieved),
                ("advice before weather", -self.sequence_penalty, ordered is False and advised.given[:1]),
            ),
            answer,
            only_counted=calls.only_counted,
        )

    def _gets_data(self, tool: str) -> bool:
        """Say whether a tool gets weather data; a preference tool does not, though its server be called "weather"."""
        name = tool.lower()
        return not on_preferences(name) and any(part.lower() in name for part in self.data_tools)


def _ordered(data: WeatherData, advised: Advice) -> bool | None:
    """Say whether the weather comes before the advice; `None` unless there are both."""
    return None if data.start is None or advised.start is None else data.start < advised.start


def _after_first_sentence(text: Text) -> Text:
    end = next((start for start, word in zip(text.starts, text.words, strict=True) if word in _SENTENCE_ENDS), None)
    return read(text.original[end + 1 :] if end is not None else "")


def _fits(question: Query, worked: Sequence[str], trial: Trial) -> bool:
    """Say whether the tools that worked suit the question: a forecast needs a forecast tool, if one was offered."""
    offered = (trial.transcript.tools if trial.transcript else None) or ()
    if question.wants_forecast and any("forecast" in name.lower() for name in offered):
        return any("forecast" in name.lower() for name in worked)
    return bool(worked)
