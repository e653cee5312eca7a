"""Compliance: whether an answer made use of the tools, where its condition requires that.

Source: k-eval's `require_mcp_tool_use` and `require_mcp_tool_success`. Asking only those trials again that did not
comply favours their condition; so every discarded answer is kept as an attempt, and counted.
"""

from __future__ import annotations

from keval.config.evaluation import Condition
from keval.errors import TrialError
from keval.records import Transcript

__all__ = ["ToolUseError", "check_tool_use", "requires_tool_use"]


class ToolUseError(TrialError):
    """An answer that did not make the use of tools that its condition requires."""


def requires_tool_use(condition: Condition) -> bool:
    """Whether a condition requires anything of the use of tools."""
    return condition.require_mcp_tool_use or condition.require_mcp_tool_success


def check_tool_use(transcript: Transcript, condition: Condition) -> bool | None:
    """Say whether an answer complies; `None` when it is not known whether tools were used.

    A call that no server ran, such as that of an unknown tool, is no use of a tool.

    Raises ToolUseError when it does not comply: kind `no_tool_use` or `no_tool_success`.
    """
    calls = [call for call in transcript.tool_calls if call.runs != 0]
    if not calls and transcript.unlisted_calls is None:
        return None
    if condition.require_mcp_tool_use and not calls and not transcript.unlisted_calls:
        raise ToolUseError(
            "the agent answered without calling a tool, which its condition requires", kind="no_tool_use"
        )
    if condition.require_mcp_tool_success and calls and all(call.error is not None for call in calls):
        raise ToolUseError(
            f"no tool call succeeded, which the condition requires; the last said: {calls[-1].error}",
            kind="no_tool_success",
        )
    return True
