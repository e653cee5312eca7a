"""Efficiency: response time and tool call count (metrics-assessment.md, Functional Performance 6 and 7)."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs

from keval import Scale, Score, Trial
from keval_metrics_weather.calls import last_calls
from keval_metrics_weather.options import check_rising, not_negative, share
from keval_metrics_weather.scale import SCALE
from keval_metrics_weather.tally import neutral

__all__ = ["ResponseTime", "ToolCallCount"]


@attrs.frozen
class ResponseTime:
    """Scores the seconds from the last question to its answer.

    Below `excellent` it is `excellent_value`; from there on it runs evenly from `good_value` to `acceptable_value` at
    `good`, to `slow_value` at `acceptable` and to `slowest_value` at `slowest`. Neutral without timing.
    """

    scale: ClassVar[Scale] = SCALE

    excellent: float = not_negative(2.0)
    good: float = not_negative(5.0)
    acceptable: float = not_negative(10.0)
    slowest: float = not_negative(20.0)
    excellent_value: float = share(1.0)
    good_value: float = share(0.9)
    acceptable_value: float = share(0.7)
    slow_value: float = share(0.5)
    slowest_value: float = share(0.3)

    def __attrs_post_init__(self) -> None:
        check_rising(self, "excellent", "good", "acceptable", "slowest")

    def score(self, trial: Trial) -> Score:
        """Score the wall time of the trial's last turn."""
        seconds = _seconds(trial)
        if seconds is None or not math.isfinite(seconds) or seconds < 0:
            return neutral("no timing")
        if seconds < self.excellent:
            value, speed = self.excellent_value, "excellent"
        elif seconds < self.good:
            past = (seconds - self.excellent) / (self.good - self.excellent)
            value, speed = _between(self.good_value, self.acceptable_value, past), "good"
        elif seconds < self.acceptable:
            past = (seconds - self.good) / (self.acceptable - self.good)
            value, speed = _between(self.acceptable_value, self.slow_value, past), "acceptable"
        else:
            past = (seconds - self.acceptable) / (self.slowest - self.acceptable)
            value, speed = _between(self.slow_value, self.slowest_value, min(past, 1.0)), "slow"
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
class ToolCallCount:
    """Scores how many tool calls the last answer took: fewer is better, none is neutral.

    A call counts as often as a server ran it, and once where nobody watched or where it is only counted. Neutral, too,
    when it is not known whether tools were called.
    """

    scale: ClassVar[Scale] = SCALE

    optimal: int = not_negative(2)
    good: int = not_negative(4)
    acceptable: int = not_negative(6)
    optimal_value: float = share(1.0)
    good_value: float = share(0.8)
    acceptable_value: float = share(0.6)
    inefficient_value: float = share(0.4)

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
            value, verdict = self.optimal_value, "optimal"
        elif count <= self.good:
            value, verdict = self.good_value, "good"
        elif count <= self.acceptable:
            value, verdict = self.acceptable_value, "acceptable"
        else:
            value, verdict = self.inefficient_value, "inefficient"
        shown = f", {calls.only_counted} of them only counted" if calls.only_counted else ""
        return Score(value, f"{count} tool call{'' if count == 1 else 's'}{shown}: {verdict}", details=evidence)
