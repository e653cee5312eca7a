"""What a failed model request, or a reply without an answer, means to a run."""

from __future__ import annotations

import json
from collections.abc import Mapping

from google.adk.models.llm_response import LlmResponse
from google.genai.types import BlockedReason, FinishReason as GeminiFinishReason

from keval.plugin import MAX_OUTPUT_TOKENS, REFUSAL, SILENCE, FinishReason, ModelError, TrialError
from keval_clients import read_failure

_QUOTED = 1000
_FILTERED = {
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    *(reason.value for reason in BlockedReason if reason is not BlockedReason.OTHER),
}
"""Why a filter stopped a reply, or refused the prompt."""
# ADK's own words, by which alone such a reply is known.
_NO_CHOICES = "OpenAI response contained no choices."


def bad_reply(problem: object) -> TrialError:
    """Return the error for a reply that does not have the API's shape; another attempt may get another one."""
    said = f"ADK made nothing of the model's reply: {problem}"[:_QUOTED]
    return TrialError(said, stage="model", kind="bad_reply", retryable=True)


def silent(response: LlmResponse) -> TrialError:
    """Return the error for a reply with neither text nor a tool call."""
    code = response.error_code or response.finish_reason
    reason = str(getattr(code, "value", code) or "")
    said = response.error_message or ""
    told = _told(said)
    if code is None or said == _NO_CHOICES:
        return bad_reply(said or "it has no candidates")
    if "code" in told:  # OpenAI's Responses API reports a failure inside a reply
        return read_failure(told)
    return _finish_reason(reason, told).no_answer(": ".join(filter(None, [reason, said]))[:_QUOTED])


def _told(said: str) -> Mapping[str, object]:
    """Read the JSON object that ADK makes of what the Responses API says of a reply, or of the event of its end."""
    try:
        told = json.loads(said)
        if told.get("type") == "response.failed":
            told = told["response"]["error"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _finish_reason(reason: str, told: Mapping[str, object]) -> FinishReason:
    if reason == GeminiFinishReason.MAX_TOKENS.value:
        return MAX_OUTPUT_TOKENS
    return REFUSAL if reason in _FILTERED or told.get("reason") == "content_filter" else SILENCE


def unreachable(error: Exception) -> ModelError:
    """Return the error for a request that got no answer."""
    cause = error.__cause__ or error
    return ModelError(f"the model's endpoint could not be reached: {type(cause).__name__}: {cause}")
