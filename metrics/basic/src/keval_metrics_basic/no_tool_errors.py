"""No tool errors: how many of an agent's tool calls went without an error."""

from __future__ import annotations

from collections import Counter

import attrs

from keval import Score, Trial
from keval_metrics_basic.calls import unlisted
from keval_metrics_basic.evidence import excerpt, listed

__all__ = ["NoToolErrors"]


@attrs.frozen
class NoToolErrors:
    """Scores 1 less the share of tool calls that came back as an error; neutral, at 1, without any call."""

    def score(self, trial: Trial) -> Score:
        """Count the trial's failed tool calls, each as the agent asked for it."""
        unknown = unlisted(trial)
        if trial.transcript is None or unknown:
            return Score(None, f"it is not known which tool calls failed: {unknown}")
        calls = trial.transcript.tool_calls
        failed = [call for call in calls if call.error is not None]
        details = {
            "calls": len(calls),
            "failed": len(failed),
            "errors": [{"tool": excerpt(call.name), "error": excerpt(call.error or "", 500)} for call in failed[:20]],
        }
        if not calls:
            return Score(1.0, "no tool calls", neutral=True, details=details)
        if not failed:
            return Score(1.0, f"none of {len(calls)} tool calls failed", details=details)
        by_tool = Counter(excerpt(call.name) for call in failed)
        names = listed(f"{name} ({count})" if count > 1 else name for name, count in by_tool.items())
        first = excerpt(failed[0].error or "no message")
        reason = f"{len(failed)} of {len(calls)} tool calls failed: {names}; first error: {first}"
        return Score(round(1 - len(failed) / len(calls), 6), reason, details=details)
