"""A failure that is told inside a reply with HTTP status 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keval.plugin import ModelError, TrialError

__all__ = ["read_failure"]

_PASSING = (None, "server_error", "vector_store_timeout")
"""What may be gone at the next attempt; every other word is OpenAI's for a request that it will not answer."""


def read_failure(error: Mapping[str, Any] | None, otherwise: str) -> TrialError:
    """Read an error, whose code is a word of OpenAI's or, from OpenRouter, an HTTP status; `otherwise` is its stead."""
    told = error or {}
    code, message = told.get("code"), told.get("message") or "no reason given"
    said = f"the model failed: {code or otherwise}: {message}"
    if code == "rate_limit_exceeded":
        return ModelError(said, status=429)
    if isinstance(code, int):
        return ModelError(said, status=code)
    return TrialError(said, stage="model", kind=str(code or otherwise), retryable=code in _PASSING)
