"""Tokens: how many the model read and wrote."""

from __future__ import annotations

from typing import Literal

import attrs

from keval import Scale, Score, Trial, Usage
from keval_metrics_basic.limits import measured, scale_of

__all__ = ["Tokens"]

_UNIT = "tokens"


@attrs.frozen
class Tokens:
    """Scores the tokens of all model calls of a trial; fewer is better. With `limit`, 1 within it and 0 beyond."""

    count: Literal["total", "input", "output"] = "total"
    limit: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))

    @property
    def scale(self) -> Scale:
        """Tokens, or 0 to 1 with a limit."""
        return scale_of(_UNIT, self.limit)

    def score(self, trial: Trial) -> Score:
        """Count the trial's tokens, cached and reasoning ones included."""
        usage = trial.transcript.usage if trial.transcript else Usage()
        parts = {"input": usage.input_tokens, "output": usage.output_tokens}
        counted = parts if self.count == "total" else {self.count: parts[self.count]}
        known = [tokens for tokens in counted.values() if tokens is not None and tokens >= 0]
        if len(known) < len(counted):
            unknown = " and ".join(name for name, tokens in counted.items() if tokens is None or tokens < 0)
            return Score(None, f"the agent did not report its {unknown} tokens", details=parts)
        return measured(sum(known), _UNIT, self.limit, **parts, counted=self.count)
