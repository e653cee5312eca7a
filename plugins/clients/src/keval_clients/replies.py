"""Replies of model endpoints: strict JSON, token usage, and the errors for replies that cannot be read."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from keval import Usage
from keval.plugin import ModelError, TrialError

_QUOTED = 1000


class RefusedError(ModelError):
    """The endpoint answered with an HTTP status of an error; `field` is what it says it is about, of the request."""

    def __init__(self, message: str, status: int, retry_after: float | None, field: str | None) -> None:
        super().__init__(message, status=status, retry_after=retry_after)
        self.field = field


def no_reply(said: object) -> TrialError:
    """Return the error for a reply that does not have the API's shape; another attempt may get another one."""
    message = f"the model's endpoint answered with something that is no reply: {quoted(said)}"
    return TrialError(message, stage="model", kind="bad_reply", retryable=True)


def broken_off() -> TrialError:
    """Return the error for a stream that ended before the reply did; another attempt may get all of it."""
    return TrialError("the model's reply ended in the middle", stage="model", kind="bad_reply", retryable=True)


def quoted(said: object) -> str:
    """Return the beginning of what an endpoint said, which may be a whole web page."""
    text = str(said)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def read_json(text: str | bytes) -> Any:
    """Read JSON so that it can be written again; a lone surrogate, which UTF-8 has not, becomes `?`.

    Raises:
        ValueError: it is no JSON, or Python cannot hold it: NaN, a number that is too large, lists nested too deeply.
    """
    try:
        value = _DECODER.decode(text if isinstance(text, str) else text.decode())
        escaped = "\\ud" in text.lower() if isinstance(text, str) else b"\\ud" in text.lower()
        if not escaped:
            return value
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def completions_usage(usage: object) -> Usage:
    """Read the `usage` of Chat Completions; cached tokens are among the input's and reasoning among the output's."""
    return Usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(usage, "prompt_tokens_details", "cached_tokens"),
        _count(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def responses_usage(usage: object) -> Usage:
    """Read the `usage` of OpenAI's Responses; cached tokens are among the input's and reasoning among the output's."""
    return Usage(
        _count(usage, "input_tokens"),
        _count(usage, "output_tokens"),
        _count(usage, "input_tokens_details", "cached_tokens"),
        _count(usage, "output_tokens_details", "reasoning_tokens"),
    )


def messages_usage(usage: object) -> Usage:
    """Read the `usage` of Anthropic's Messages, which counts what was read from a cache or written to one apart."""
    plain, cached = _count(usage, "input_tokens"), _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    return Usage(
        None if plain is None else plain + (cached or 0) + (written or 0),
        _count(usage, "output_tokens"),
        # Where the API counts input tokens and says nothing of its cache, nothing was read from it.
        0 if cached is None and plain is not None else cached,
        _count(usage, "output_tokens_details", "thinking_tokens"),
    )


def _count(usage: object, *keys: str) -> int | None:
    for key in keys:
        usage = usage.get(key) if isinstance(usage, dict) else None
    # True is an int, too.
    return usage if type(usage) is int and usage >= 0 else None
