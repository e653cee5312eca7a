"""Why a model's reply ended, where that was early or without a word, and the failure that it makes of a trial."""

from __future__ import annotations

from typing import Literal

import attrs

from keval.errors import TrialError


@attrs.frozen
class FinishReason:
    """What may end a model's reply early. If it has neither a text nor a tool call by then, its trial fails.

    `kind` is that of the failure, `by` what ended the reply, and `remedy` what can be done.
    """

    kind: Literal["cut_off", "refused", "no_answer"]
    by: str
    remedy: str

    @property
    def truncates(self) -> bool:
        """Whether it was a limit of length, so that a reply that has a text is an answer that was cut off."""
        return self.kind == "cut_off"

    @property
    def problem(self) -> str:
        """What the model is told of a tool call that it could not finish."""
        return f"the call was cut off by {self.by}"

    def no_answer(self, detail: str = "") -> TrialError:
        """Return the error for a reply with neither text nor a tool call; the same request would end so again.

        `detail` is what the endpoint said of it.
        """
        said = f" ({detail})" if detail else ""
        message = f"{self.by} ended the reply before it said anything{said}; {self.remedy}"
        return TrialError(message, stage="model", kind=self.kind)


MAX_OUTPUT_TOKENS = FinishReason("cut_off", "the limit of output tokens", "raise max_tokens")
CONTEXT_WINDOW = FinishReason(
    "cut_off", "the end of the model's context window", "take a model with a larger one, or tools that return less"
)
REFUSAL = FinishReason(
    "refused",
    "a refusal by the model or by a filter at its endpoint",
    "look at what it was asked and what the tools returned, or take another model",
)
SILENCE = FinishReason(
    "no_answer", "the model itself", "look at what it was asked and what the tools returned, or take another model"
)
"""The model stopped normally, and said nothing."""
