"""How a model's reply may end without an answer; one rule for every adapter.

A reply that has neither a text nor a tool call fails its trial. The kind of the failure says how the reply ended:
`cut_off`, `refused`, or `no_answer` where the model stopped normally.
"""

from __future__ import annotations

from typing import Literal

import attrs

from keval.errors import TrialError

EndingKind = Literal["cut_off", "refused", "no_answer"]


@attrs.frozen
class Ending:
    """One way to end: `kind` is that of the failure, `by` what ended the reply, and `remedy` what can be done."""

    kind: EndingKind
    by: str
    remedy: str

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


MAX_OUTPUT_TOKENS = Ending("cut_off", "the limit of output tokens", "raise max_tokens")
CONTEXT_WINDOW = Ending(
    "cut_off",
    "the end of the model's context window",
    "take a model with a larger one, or tools that return less",
)
REFUSAL = Ending(
    "refused",
    "a refusal by the model or by a filter at its endpoint",
    "look at what it was asked and what the tools returned, or take another model",
)
SILENCE = Ending(
    "no_answer",
    "the model itself",
    "look at what it was asked and what the tools returned, or take another model",
)
"""The model stopped normally, and said nothing."""
