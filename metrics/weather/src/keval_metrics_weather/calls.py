"""Calls: the tool calls that a trial's last answer took."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from keval import ToolCall, Trial

__all__ = ["LastCalls", "last_calls", "on_preferences"]


@attrs.frozen
class LastCalls:
    """The calls of the last turn: those listed, and how many more are only counted (`None`: not known)."""

    listed: Sequence[ToolCall]
    only_counted: int | None

    @property
    def known(self) -> bool:
        """Whether any call is known to have been made."""
        return bool(self.listed or self.only_counted)

    @property
    def may_have_worked(self) -> bool:
        """Whether one may have worked that is not listed, or there may have been none to fail."""
        return not self.listed or self.only_counted != 0

    @property
    def worked(self) -> Sequence[ToolCall]:
        """The listed calls that did not fail."""
        return [call for call in self.listed if call.error is None]

    @property
    def made_good(self) -> bool:
        """Whether a call that worked came after the last that failed; a preference tool makes up for nothing."""
        last = max(
            (place for place, call in enumerate(self.listed) if call.error is not None), default=len(self.listed)
        )
        return any(call.error is None and not on_preferences(call.name) for call in self.listed[last + 1 :])


def on_preferences(tool: str) -> bool:
    """Say whether a tool reads or writes the user's preferences, as its name tells."""
    return "preference" in tool.lower()


def last_calls(trial: Trial) -> LastCalls:
    """Return the tool calls of a trial's last turn."""
    if trial.transcript is None:
        return LastCalls((), None)
    last = len(trial.sample.turns)
    counted = trial.transcript.unlisted_calls
    return LastCalls(
        [call for call in trial.transcript.tool_calls if call.turn == last],
        max(counted, 0) if counted is not None else None,
    )
