"""Latency: how long the user waits."""

from __future__ import annotations

import math
from typing import Literal

import attrs

from keval import Scale, Score, Trial
from keval_metrics_basic.limits import measured, scale_of

__all__ = ["Latency"]

_UNIT = "s"


@attrs.frozen
class Latency:
    """Scores the seconds from question to final answer, of all turns together or of the last; less is better.

    With `limit` (seconds), 1 within it and 0 beyond.
    """

    limit: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.gt(0)))
    turn: Literal["all", "last"] = "all"

    @property
    def scale(self) -> Scale:
        """Seconds, or 0 to 1 with a limit."""
        return scale_of(_UNIT, self.limit)

    def score(self, trial: Trial) -> Score:
        """Measure the trial's wall time."""
        seconds = self._seconds(trial)
        if seconds is None or not math.isfinite(seconds) or seconds < 0:
            which = "last turn" if self.turn == "last" else "trial"
            return Score(None, f"it is not known how long the {which} took")
        return measured(float(seconds), _UNIT, self.limit, seconds=seconds, turn=self.turn)

    def _seconds(self, trial: Trial) -> float | None:
        if trial.transcript is None:
            return None
        if self.turn == "all":
            return trial.transcript.duration
        if trial.transcript.turn_durations:
            return trial.transcript.turn_durations[-1]
        # A transcript that only has a total is one turn long, if the sample is.
        return None if trial.sample.turns else trial.transcript.duration
