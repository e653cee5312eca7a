"""What went wrong, in keval's words."""

from __future__ import annotations

from collections.abc import Iterator

from openai import APIConnectionError, APIStatusError

from keval.plugin import ModelError, TrialError, retry_after_seconds

__all__ = ["causes", "described", "model_fault", "reply_fault"]


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
            wait = retry_after_seconds(cause.response.headers.get("retry-after"))
            return ModelError(str(cause), status=cause.status_code, retry_after=wait)
        case APIConnectionError() as cause:
            # The SDK only says "Connection error."; what failed underneath is in its cause.
            return ModelError(f"{cause} {cause.__cause__ or ''}".strip())
        case _:
            said = f"the framework made nothing of the model's reply: {described(error)}"
            return TrialError(said, stage="model", kind="bad_reply")


def reply_fault(reply: object) -> ModelError | None:
    """Find the failure that the Responses API reports inside a reply with HTTP status 200."""
    if getattr(reply, "status", None) != "failed":
        return None
    error = getattr(reply, "error", None)
    code, message = getattr(error, "code", "failed"), getattr(error, "message", "no reason given")
    return ModelError(f"the model failed: {code}: {message}", status=429 if code == "rate_limit_exceeded" else 500)
