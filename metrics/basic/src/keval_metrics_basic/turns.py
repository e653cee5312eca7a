"""Turns: how many steps the agent's loop took."""

from __future__ import annotations

import attrs

from keval import Scale, Score, Trial
from keval_metrics_basic.limits import measured, scale_of

__all__ = ["Turns"]

_UNIT = "model calls"


@attrs.frozen
class Turns:
    """Scores how many model calls a trial took; fewer is better. With `limit`, 1 within it and 0 beyond.

    A turn is one step of the agent's loop, as agent SDKs count them (`max_turns`), not a message of the user.
    """

    limit: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))

    @property
    def scale(self) -> Scale:
        """Model calls, or 0 to 1 with a limit."""
        return scale_of(_UNIT, self.limit)

    def score(self, trial: Trial) -> Score:
        """Count the trial's model calls."""
        calls = trial.transcript.model_calls if trial.transcript else None
        if calls is None or calls < 0:
            return Score(None, "the agent did not report how many model calls it took")
        return measured(calls, _UNIT, self.limit, model_calls=calls)
