"""What ended a reply before its time."""

from __future__ import annotations

import attrs

from keval.plugin import TrialError

__all__ = ["CONTEXT_WINDOW", "MAX_OUTPUT_TOKENS", "REFUSAL", "Ending"]


@attrs.frozen
class Ending:
    """One such ending: `kind` is the error's where a reply ended so with nothing in it, and `by` what ended it."""

    kind: str
    by: str
    remedy: str

    @property
    def problem(self) -> str:
        """What the model is told of a tool call that it could not finish."""
        return f"the call was cut off by {self.by}"

    def no_answer(self) -> TrialError:
        """Return the error for a reply with neither text nor a tool call; the same request would end so again."""
        message = f"{self.by} ended the reply before it said anything; {self.remedy}"
        return TrialError(message, stage="model", kind=self.kind)


MAX_OUTPUT_TOKENS = Ending("max_output_tokens", "the limit of output tokens", "raise max_tokens")
CONTEXT_WINDOW = Ending(
    "context_window",
    "the end of the model's context window",
    "take a model with a larger one, or tools that return less",
)
REFUSAL = Ending(
    "refusal",
    "a refusal by the model or by a filter at its endpoint",
    "look at what it was asked and what the tools returned, or take another model",
)
