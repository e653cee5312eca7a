"""What went wrong, in keval's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_framework import ChatResponse, ChatResponseUpdate
from openai import APIConnectionError, APIError, APIResponseValidationError, APIStatusError

from keval.plugin import MAX_OUTPUT_TOKENS, REFUSAL, FinishReason, ModelError, TrialError, is_blank
from keval_clients import read_failure, refused

_FINISH_REASONS: Mapping[str | None, FinishReason] = {"length": MAX_OUTPUT_TOKENS, "content_filter": REFUSAL}
"""The values of the framework's `finish_reason` with which a reply may be cut off."""

_LAST_EVENTS = {"response.completed", "response.incomplete", "response.failed"}
"""The events of the Responses API with which a stream ends; each has the whole reply."""

_TOLD = re.compile(r"OpenAI streaming error: (?:(?P<code>\w+): )?(?P<said>.*)", re.DOTALL)
"""What the framework makes of the event `error` of the Responses API."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, what it was raised from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def described(error: Exception) -> str:
    """Return an error's text; the framework's errors carry their cause and the MCP client's their code beside it."""
    return next((said for said in error.args if isinstance(said, str)), repr(error))


def model_fault(error: Exception) -> TrialError:
    """Translate what a model call raised: as a rule the framework's own error, whose cause is the OpenAI SDK's."""
    match error.__cause__:
        case APIStatusError() as cause:
            return refused(cause.status_code, cause.response.headers, cause.response.content)
        case APIConnectionError() as cause:
            # The SDK only says "Connection error."; what failed underneath is in its cause.
            return ModelError(f"{cause} {cause.__cause__ or ''}".strip())
        case APIError() as cause if not isinstance(cause, APIResponseValidationError):
            return read_failure({"code": cause.code, "type": cause.type, "message": cause})
        case _ if told := next(filter(None, (_TOLD.match(str(each)) for each in causes(error))), None):
            return read_failure({"code": told["code"], "message": told["said"]})
        case _:
            return bad_reply(described(error))


def end_of_stream(update: ChatResponseUpdate) -> object | None:
    """Return the API's own object of a reply that ends with this update: the last chunk, or the whole response."""
    raw = update.raw_representation
    if getattr(raw, "type", None) in _LAST_EVENTS:
        return getattr(raw, "response", None)
    return raw if update.finish_reason is not None else None


def broken_off() -> TrialError:
    """Return the error for a stream that ended before the reply did, of which the framework makes a reply."""
    return bad_reply("its stream ended before the reply did")


def reply_fault(response: ChatResponse[Any], reply: object) -> TrialError | None:
    """Find why a reply with HTTP status 200, which the API calls `reply`, fails the trial, if it does."""
    if getattr(reply, "status", None) == "failed":
        error = getattr(reply, "error", None)
        return read_failure({name: getattr(error, name, None) for name in ("code", "message")})
    # The framework takes a completion without choices for an answer that is empty.
    if not response.messages and response.finish_reason is None:
        return bad_reply("it has no choices")
    contents = [content for message in response.messages for content in message.contents]
    if not is_blank(response.text) or any(content.type == "function_call" for content in contents):
        return None
    cut = _FINISH_REASONS.get(response.finish_reason)
    return cut.no_answer() if cut else None


def is_truncated(response: ChatResponse[Any]) -> bool:
    """Return whether a limit of length ended a reply."""
    cut = _FINISH_REASONS.get(response.finish_reason)
    return cut is not None and cut.truncates


def bad_reply(problem: str) -> TrialError:
    """Return the error for a reply that does not have the API's shape; another attempt may get another one."""
    said = f"the framework made nothing of the model's reply: {problem}"
    return TrialError(said, stage="model", kind="bad_reply", retryable=True)
