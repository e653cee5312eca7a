"""What a failed model request means to a run: its status, and how long the endpoint asked to wait."""

from __future__ import annotations

from collections.abc import Mapping

from keval.plugin import ModelError, retry_after_seconds

__all__ = ["refused", "unreachable"]


def refused(status: int, reason: str, headers: Mapping[str, str]) -> ModelError:
    """Return the error for an answer with an HTTP `status` of failure."""
    return ModelError(
        f"the model's endpoint answered {status}: {reason}",
        status=status,
        retry_after=retry_after_seconds(headers.get("retry-after")),
    )


def unreachable(error: Exception) -> ModelError:
    """Return the error for a request that got no answer."""
    cause = error.__cause__ or error
    return ModelError(f"the model's endpoint could not be reached: {type(cause).__name__}: {cause}")
