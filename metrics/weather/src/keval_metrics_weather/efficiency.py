"""Efficiency: response time and tool call count (metrics-assessment.md, Functional Performance 6 and 7)."""

from __future__ import annotations

import math

import attrs

from keval import Score, Trial
from keval_metrics_weather.tally import neutral

__all__ = ["ResponseTime", "ToolCallCount"]

_SLOW_SPAN = 10.0
"""Seconds beyond `acceptable` over which a slow answer loses its last 0.2 points."""


@attrs.frozen
class ResponseTime:
    """Scores the seconds from the last question to its answer; full marks below `excellent`. Neutral without timing."""

    excellent: float = 2.0
    good: float = 5.0
    acceptable: float = 10.0

    def score(self, trial: Trial) -> Score:
        """Score the wall time of the trial's last turn."""
        seconds = _seconds(trial)
        if seconds is None or not math.isfinite(seconds) or seconds < 0:
            return neutral("no timing")
        if seconds < self.excellent:
            value, band = 1.0, "excellent"
        elif seconds < self.good:
            value, band = 0.9 - (seconds - self.excellent) / (self.good - self.excellent) * 0.2, "good"
        elif seconds < self.acceptable:
            value, band = 0.7 - (seconds - self.good) / (self.acceptable - self.good) * 0.2, "acceptable"
        else:
            value, band = max(0.3, 0.5 - (seconds - self.acceptable) / _SLOW_SPAN * 0.2), "slow"
        return Score(round(value, 6), f"{seconds:.4g} s: {band}", details={"seconds": seconds, "band": band})


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

    A call counts as often as a server ran it, and once where nobody watched.
    """

    optimal: int = 2
    good: int = 4
    acceptable: int = 6
    optimal_value: float = 1.0
    good_value: float = 0.8
    acceptable_value: float = 0.6
    inefficient_value: float = 0.4

    def score(self, trial: Trial) -> Score:
        """Count the tool calls of the trial's last turn."""
        made = trial.transcript.tool_calls if trial.transcript else ()
        last = len(trial.sample.turns)
        calls = [call for call in made if call.turn == last]
        count = sum(1 if call.runs is None else max(call.runs, 0) for call in calls)
        evidence = {"count": count, "asked_for": len(calls), "failed": sum(call.error is not None for call in calls)}
        if count == 0:
            return neutral("no tool calls", **evidence)
        if count <= self.optimal:
            value, verdict = self.optimal_value, "optimal"
        elif count <= self.good:
            value, verdict = self.good_value, "good"
        elif count <= self.acceptable:
            value, verdict = self.acceptable_value, "acceptable"
        else:
            value, verdict = self.inefficient_value, "inefficient"
        names = [call.name for call in calls]
        plural = "" if count == 1 else "s"
        return Score(value, f"{count} tool call{plural}: {verdict}", details={**evidence, "names": names})
