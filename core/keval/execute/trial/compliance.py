"""Compliance: whether an answer used tools, if its condition requires that.

Source: k-eval.md, `require_mcp_tool_use` and `require_mcp_tool_success`. Repeating only the trials that did not comply
favours their condition, so every discarded answer is kept as an attempt, and counted.
"""

from __future__ import annotations

from keval.config.evaluation import Condition
from keval.errors import TrialError
from keval.execute.attempts import Attempted, failure_of
from keval.records.transcript import Transcript


class ToolUseError(TrialError):
    """An answer did not use tools as its condition requires."""


def check_tool_use(transcript: Transcript, condition: Condition) -> bool | None:
    """Return whether an answer complies; `None` if that is unknown, because only the number of calls is known.

    A call that no server executed, such as one of an unknown tool, counts neither as tool use nor as success.

    Raises ToolUseError when it does not comply: kind `no_tool_use` or `no_tool_success`.
    """
    listed, unlisted = transcript.tool_calls, transcript.unlisted_calls
    ran = [call for call in listed if call.executions != 0]
    if condition.require_mcp_tool_use and not ran and not unlisted:
        if unlisted is None:
            return None
        raise ToolUseError(
            "the agent answered without calling a tool, which its condition requires", kind="no_tool_use"
        )
    if condition.require_mcp_tool_success and not any(call.error is None for call in ran):
        if unlisted != 0:
            return None
        if listed:
            raise ToolUseError(
                f"no tool call succeeded, which the condition requires; the last said: {listed[-1].error}",
                kind="no_tool_success",
            )
    return True


def asks_again(outcome: Attempted[Transcript], on_missing: str) -> bool:
    """Return whether an answer without the tool use that is required is asked for again."""
    return isinstance(outcome.error, ToolUseError) and on_missing == "retry"


def held_to(
    condition: Condition, transcript: Transcript | None, outcome: Attempted[Transcript]
) -> tuple[bool | None, Attempted[Transcript]]:
    """Check an answer for the tool use that its condition requires; returns also whether it complied, if required."""
    if transcript is None or outcome.failure is not None or not condition.requires_tool_use:
        return None, outcome
    try:
        return check_tool_use(transcript, condition), outcome
    except ToolUseError as error:
        kept = condition.on_missing_tool_use == "keep"
        return False, outcome if kept else Attempted(outcome.value, failure_of(error), error)
