"""Use of tools: how often agents were offered each tool, called it and failed with it."""

from __future__ import annotations

import attrs

__all__ = ["ToolUse"]


@attrs.frozen
class ToolUse:
    """How the trials of one arm used one tool, by the name that the agent has for it.

    Of `trials` with a transcript, the model was `offered` the tool in so many (`None`: unknown), `called` it, called it
    `first`, before any other, and had a call of it that `failed`. `calls` counts its calls, `errors` those that came
    back as an error, and `rejected` those of them whose arguments did not fit or were refused before they reached a
    server. `unlisted` trials may have made further calls, whose tools nobody reported.
    """

    agent: str
    condition: str
    tool: str
    server: str | None = None
    trials: int = 0
    offered: int | None = None
    called: int = 0
    first: int = 0
    failed: int = 0
    calls: int = 0
    errors: int = 0
    rejected: int = 0
    unlisted: int = 0

    @property
    def never_called(self) -> bool:
        """Whether the tool was offered, and it is known that no trial called it."""
        return bool(self.offered) and not self.called and not self.unlisted
