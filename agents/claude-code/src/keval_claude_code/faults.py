"""How a turn failed, in keval's words."""

from __future__ import annotations

from collections.abc import Mapping

from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock

from keval.plugin import MAX_OUTPUT_TOKENS, ModelError, TrialError

__all__ = ["turn_fault"]

_STATUSES: Mapping[str | None, int] = {
    "authentication_failed": 401,
    "billing_error": 402,
    "invalid_request": 400,
    "rate_limit": 429,
}
"""The HTTP status behind a kind of error, where Claude Code found the fault itself and no request shows one."""

_UNREACHED = "server_error"
"""The kind of error, where there is no status either, of a connection that failed or broke off."""


def turn_fault(result: ResultMessage, stand_in: AssistantMessage | None, max_turns: int) -> TrialError | None:
    """Return why a turn has no answer of the model's, or None if it has one.

    `stand_in` is the message in the model's place by which Claude Code tells an error, if that is how the turn ended.
    """
    if denied := sorted({denial["tool_name"] for denial in result.permission_denials or ()}):
        return TrialError(
            f"Claude Code denied calls of {', '.join(denied)}, which the condition allows; settings managed for this"
            " machine may forbid them: allow them there",
            kind="tool_denied",
        )
    if result.subtype == "error_max_turns":
        return TrialError(
            f"{max_turns} model calls brought no answer; raise max_turns if that is too few", kind="max_turns"
        )
    said = "; ".join(result.errors or []) or result.result or result.subtype
    if stand_in is not None:
        said = "\n".join(block.text for block in stand_in.content if isinstance(block, TextBlock))
        if stand_in.stop_reason == "refusal":
            return TrialError(
                f"the model refused to answer; ask another way, or another model: {said}", stage="model", kind="refused"
            )
        if str(stand_in.error) == "max_output_tokens":  # not among the errors that the SDK declares
            return MAX_OUTPUT_TOKENS.no_answer(said)
        status = result.api_error_status or _STATUSES.get(stand_in.error)
        if status is None and stand_in.error != _UNREACHED:
            kind = stand_in.error or "bad_reply"
            return TrialError(f"Claude Code answered in the model's place: {said}", stage="model", kind=kind)
        return ModelError(f"the model call failed: {said}", status=status)
    if result.is_error or result.subtype != "success":
        return TrialError(f"Claude Code gave up the turn: {said}", kind=result.subtype)
    return None
