"""Tool use: scores time, tool calls, planning and recovery from errors (metrics-assessment.md, 6 to 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs

from keval import Score, ToolCall, Trial
from keval_metrics_weather.questions import clarifying, only_asks_back
from keval_metrics_weather.reading.advice import Advice, advice, flow_of
from keval_metrics_weather.reading.asking import alternatives_offered
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.statements import WeatherData, weather_data
from keval_metrics_weather.reading.words import Text, affirmed, read
from keval_metrics_weather.scores import (
    BehavioralQuality,
    FunctionalPerformance,
    check_rising,
    neutral,
    not_negative,
    tally,
)
from keval_metrics_weather.turns import turn_of
from keval_metrics_weather.wording import (
    ALTERNATIVES,
    CLARIFYING,
    ERRORS,
    FALLBACKS,
    FLOW,
    ITEMS,
    MISSING,
    RECOMMENDING,
)


class LastCalls(NamedTuple):
    """The calls of the last turn: those listed, and how many more are only counted (`None`: not known)."""

    listed: Sequence[ToolCall]
    only_counted: int | None

    @property
    def known(self) -> bool:
        """Whether any call is known to have been made."""
        return bool(self.listed or self.only_counted)

    @property
    def may_have_worked(self) -> bool:
        """Whether one may have worked that is not listed, or there may have been none to fail."""
        return not self.listed or self.only_counted != 0

    @property
    def worked(self) -> Sequence[ToolCall]:
        """The listed calls that did not fail."""
        return [call for call in self.listed if call.error is None]

    @property
    def made_good(self) -> bool:
        """Whether a call that worked came after the last that failed; a preference tool makes up for nothing."""
        last = max(
            (place for place, call in enumerate(self.listed) if call.error is not None), default=len(self.listed)
        )
        return any(call.error is None and not on_preferences(call.name) for call in self.listed[last + 1 :])


def on_preferences(tool: str) -> bool:
    """Say whether a tool reads or writes the user's preferences, as its name tells."""
    return "preference" in tool.lower()


def last_calls(trial: Trial) -> LastCalls:
    """Return the tool calls of a trial's last turn."""
    if trial.transcript is None:
        return LastCalls((), None)
    last = len(trial.sample.turns)
    counted = trial.transcript.unlisted_calls
    return LastCalls(
        [call for call in trial.transcript.tool_calls if call.turn == last],
        max(counted, 0) if counted is not None else None,
    )


@attrs.frozen
class ResponseTime(FunctionalPerformance):
    """Scores the seconds from the last question to its answer.

    Below `excellent` it is 1; from there on it runs evenly from 0.9 to 0.7 at `good`, to 0.5 at `acceptable` and to 0.3
    at `slowest`. Neutral without timing.
    """

    excellent: float = not_negative(2.0)
    good: float = not_negative(5.0)
    acceptable: float = not_negative(10.0)
    slowest: float = not_negative(20.0)

    def __attrs_post_init__(self) -> None:
        check_rising(self, "excellent", "good", "acceptable", "slowest")

    def score(self, trial: Trial) -> Score:
        """Score the wall time of the trial's last turn."""
        seconds = _seconds(trial)
        if seconds is None or not math.isfinite(seconds) or seconds < 0:
            return neutral("no timing")
        if seconds < self.excellent:
            value, speed = 1.0, "excellent"
        elif seconds < self.good:
            past = (seconds - self.excellent) / (self.good - self.excellent)
            value, speed = _between(0.9, 0.7, past), "good"
        elif seconds < self.acceptable:
            past = (seconds - self.good) / (self.acceptable - self.good)
            value, speed = _between(0.7, 0.5, past), "acceptable"
        else:
            past = (seconds - self.acceptable) / (self.slowest - self.acceptable)
            value, speed = _between(0.5, 0.3, min(past, 1.0)), "slow"
        details = {"seconds": seconds, "speed": speed}
        return Score(round(value, 6), f"{seconds:.4g} s, of {speed} speed", details=details)


def _between(first: float, last: float, past: float) -> float:
    return first + (last - first) * past


def _seconds(trial: Trial) -> float | None:
    """Return the duration of the last turn; a transcript that only has a total is one turn long."""
    if trial.transcript is None:
        return None
    if trial.transcript.turn_durations:
        return trial.transcript.turn_durations[-1]
    return None if trial.sample.turns else trial.transcript.duration


@attrs.frozen
class ToolCallCount(FunctionalPerformance):
    """Scores how many tool calls the last answer took: fewer is better, none is neutral.

    A call counts as often as a server ran it, and once where nobody watched or where it is only counted. Neutral, too,
    when it is not known whether tools were called.
    """

    optimal: int = not_negative(2)
    good: int = not_negative(4)
    acceptable: int = not_negative(6)

    def __attrs_post_init__(self) -> None:
        check_rising(self, "optimal", "good", "acceptable")

    def score(self, trial: Trial) -> Score:
        """Count the tool calls of the trial's last turn."""
        calls = last_calls(trial)
        listed = sum(1 if call.executions is None else max(call.executions, 0) for call in calls.listed)
        count = listed + (calls.only_counted or 0)
        evidence = {
            "count": count,
            "listed": listed,
            "only_counted": calls.only_counted,
            "asked_for": len(calls.listed) + (calls.only_counted or 0),
            "failed": len(calls.listed) - len(calls.worked),
            "names": [call.name for call in calls.listed],
        }
        if not calls.listed and calls.only_counted is None:
            return neutral("not known whether tools were called", **evidence)
        if count == 0:
            return neutral("no tool call reached a server" if calls.known else "no tool calls", **evidence)
        if count <= self.optimal:
            value, verdict = 1.0, "optimal"
        elif count <= self.good:
            value, verdict = 0.8, "good"
        elif count <= self.acceptable:
            value, verdict = 0.6, "acceptable"
        else:
            value, verdict = 0.4, "inefficient"
        shown = f", {calls.only_counted} of them only counted" if calls.only_counted else ""
        return Score(value, f"{count} tool call{'' if count == 1 else 's'}{shown}: {verdict}", details=evidence)


_DIRECT = frozenset({"yes", "no", "yeah", "yep", "nope"})
_MARKS = frozenset(",.!;:—–-")
_SENTENCE_ENDS = frozenset(".!?\n")


@attrs.frozen
class ActionPlanning(FunctionalPerformance):
    """Adds points, from nothing, for weather data, for data before advice, for fitting tools and for words of order.

    A direct answer ("Yes, take an umbrella.") may come first. Calls that are only counted retrieved data, but not by a
    fitting tool, as it is not known by which. Tools are those of `data_tools`, words that a tool's name contains; what
    others return is no weather data. Neutral when no weather was asked for and the answer has neither weather data nor
    advice nor calls of such tools, and when the answer must first ask for the location.
    """

    data_tools: tuple[str, ...] = ("weather", "forecast")
    flow_words: tuple[str, ...] = FLOW

    def score(self, trial: Trial) -> Score:
        """Score the answer's structure and the last turn's tool calls."""
        turn = turn_of(trial)
        answer, question = turn.answer, turn.request
        calls = last_calls(trial)
        data = weather_data(answer)
        advised = advice(answer, RECOMMENDING, ITEMS)
        planned = bool(calls.only_counted) or any(self._gets_data(call.name) for call in calls.listed)
        told = data.measured or ((data.spoken or advised.given) and not turn.is_of_something_else)
        if not (question.concerns_weather or planned or told):
            return neutral("no weather was asked for and nothing was planned")
        if not planned and data.start is None and turn.asks_back(CLARIFYING):
            return neutral("the question names no location, and the answer asks for it")
        names = tuple(dict.fromkeys([call.name for call in calls.worked if self._gets_data(call.name)]))
        retrieved = bool(names or calls.only_counted) or (calls.may_have_worked and data.start is not None)
        ordered = _ordered(data, advised)
        if ordered is False and answer.words[0] in _DIRECT and answer.padded[1] in _MARKS:
            rest = _after_first_sentence(answer)
            ordered = _ordered(weather_data(rest), advice(rest, RECOMMENDING, ITEMS))
        fitting = names if _fits(question.wants_forecast, names, trial) else ()
        flow = flow_of(answer, self.flow_words)
        shown = names or (*data.measured, *data.spoken)
        return tally(
            (
                ("weather data", 0.3, retrieved and (shown or True)),
                ("weather before advice", 0.3, ordered is True),
                ("fitting tools", 0.2, fitting),
                ("logical flow", 0.1, flow if flow and not only_asks_back(answer) else ()),
                ("no weather data", -0.2, question.concerns_weather and not retrieved),
                ("advice before weather", -0.1, ordered is False and advised.given[:1]),
            ),
            answer,
            base=0.0,
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


def _fits(wants_forecast: bool, worked: Sequence[str], trial: Trial) -> bool:
    """Say whether the tools that worked suit the question: a forecast needs a forecast tool, if one was offered."""
    offered = (trial.transcript.tools if trial.transcript else None) or ()
    if wants_forecast and any("forecast" in name.lower() for name in offered):
        return any("forecast" in name.lower() for name in worked)
    return bool(worked)


@attrs.frozen
class ErrorRecovery(BehavioralQuality):
    """Adds points for what an answer offers when something failed, is missing or is unclear.

    A message of fewer than `brief` characters without an alternative is penalised, as is passing over a failed tool
    call. Neutral when nothing failed, is missing or is unclear.
    """

    brief: int = not_negative(60)
    missing_words: tuple[str, ...] = MISSING
    alternative_words: tuple[str, ...] = ALTERNATIVES

    def score(self, trial: Trial) -> Score:
        """Score how the answer deals with an error, with missing data or with an unclear question."""
        turn = turn_of(trial)
        answer = turn.answer
        calls = last_calls(trial)
        failed = tuple(dict.fromkeys([call.name for call in calls.listed if call.error is not None]))
        informed = bool(failed) and weather_data(answer).start is not None
        retried = informed and bool(calls.made_good or calls.only_counted)
        failing = failures(answer, ERRORS, self.missing_words)
        errors, missing = failing.errors, failing.missing
        asked = clarifying(answer, CLARIFYING)
        open_points = turn.gaps if asked else ()
        details: dict[str, Any] = {
            "errors": list(map(str, (*errors, *missing))),
            "failed_tools": list(failed),
            "unclear": list(open_points),
        }
        if not (errors or missing or failed or open_points):
            return neutral("nothing failed, is missing or is unclear", **details)
        told = failing.told
        alternatives = affirmed(answer, self.alternative_words) or (alternatives_offered(answer) if told else ())
        fallbacks = affirmed(answer, FALLBACKS)
        brief = told and not (alternatives or fallbacks or asked) and len(answer.original.strip()) < self.brief
        perhaps_retried = informed and calls.only_counted is None
        passed_over = failed and not (told or retried or perhaps_retried or asked)
        handled = (told or failed) and alternatives
        return tally(
            (
                ("error handled with alternatives", 0.3, handled),
                ("recovered with another call", 0.3, retried and not handled),
                ("missing data acknowledged", 0.2, missing),
                ("alternatives despite missing data", 0.3, missing and alternatives),
                ("clarification requested", 0.2, asked),
                ("fallback offered", 0.2, told and fallbacks),
                ("brief error without an alternative", -0.2, told if brief else ()),
                ("failed tool passed over", -0.2, failed if passed_over else ()),
            ),
            answer,
            **details,
        )
