"""Resources: scores how long a trial took, and how many tokens and model calls."""

from __future__ import annotations

import math
from typing import Any, Literal

import attrs

from keval import Scale, Score, Trial, Usage


def scale_of(unit: str, limit: float | None) -> Scale:
    """Return the scale of a quantity of which less is better; with a limit, 0 to 1."""
    return Scale() if limit is not None else Scale(0.0, math.inf, better="lower", unit=unit)


def measured(value: float, unit: str, limit: float | None, **details: Any) -> Score:
    """Return the quantity as a score; with a limit, 1 within it and 0 beyond."""
    if limit is None:
        return Score(float(value), _shown(value, unit), details=details)
    within = value <= limit
    reason = f"{_shown(value, unit)}: {'within' if within else 'beyond'} the limit of {_shown(limit, unit)}"
    return Score(1.0 if within else 0.0, reason, details={**details, "limit": limit})


def _shown(value: int | float, unit: str) -> str:
    number = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f"{number} {unit}"


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
        return scale_of("s", self.limit)

    def score(self, trial: Trial) -> Score:
        """Measure the trial's wall time."""
        seconds = self._seconds(trial)
        if seconds is None or not math.isfinite(seconds) or seconds < 0:
            which = "last turn" if self.turn == "last" else "trial"
            return Score(None, f"it is not known how long the {which} took")
        return measured(float(seconds), "s", self.limit, seconds=seconds, turn=self.turn)

    def _seconds(self, trial: Trial) -> float | None:
        if trial.transcript is None:
            return None
        if self.turn == "all":
            return trial.transcript.duration
        if trial.transcript.turn_durations:
            return trial.transcript.turn_durations[-1]
        # A transcript that only has a total is one turn long, if the sample is.
        return None if trial.sample.turns else trial.transcript.duration


@attrs.frozen
class Tokens:
    """Scores the tokens of all model calls of a trial; fewer is better. With `limit`, 1 within it and 0 beyond."""

    count: Literal["total", "input", "output"] = "total"
    limit: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))

    @property
    def scale(self) -> Scale:
        """Tokens, or 0 to 1 with a limit."""
        return scale_of("tokens", self.limit)

    def score(self, trial: Trial) -> Score:
        """Count the trial's tokens, cached and reasoning ones included."""
        usage = trial.transcript.usage if trial.transcript else Usage()
        parts = {"input": usage.input_tokens, "output": usage.output_tokens}
        counted = parts if self.count == "total" else {self.count: parts[self.count]}
        known = [tokens for tokens in counted.values() if tokens is not None]
        if len(known) < len(counted):
            unknown = " and ".join(name for name, tokens in counted.items() if tokens is None)
            return Score(None, f"the agent did not report its {unknown} tokens", details=parts)
        return measured(sum(known), "tokens", self.limit, **parts, counted=self.count)


@attrs.frozen
class Turns:
    """Scores how many model calls a trial took; fewer is better. With `limit`, 1 within it and 0 beyond.

    A turn is one step of the agent's loop, as agent SDKs count them (`max_turns`), not a message of the user.
    """

    limit: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))

    @property
    def scale(self) -> Scale:
        """Model calls, or 0 to 1 with a limit."""
        return scale_of("model calls", self.limit)

    def score(self, trial: Trial) -> Score:
        """Count the trial's model calls."""
        calls = trial.transcript.model_calls if trial.transcript else None
        if calls is None or calls < 0:
            return Score(None, "the agent did not report how many model calls it took")
        return measured(calls, "model calls", self.limit, model_calls=calls)
