"""Replies of model endpoints: strict JSON, token usage, and the errors for replies that cannot be read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

from keval import KevalError
from keval.errors import ModelError, TrialError
from keval.execute.models.reply_usage import read_usage

_QUOTED = 1000


class RefusedError(ModelError):
    """The endpoint answered with an HTTP status of an error; `field` is what it says it is about, of the request."""

    def __init__(self, message: str, status: int, retry_after: float | None, field: str | None) -> None:
        super().__init__(message, status=status, retry_after=retry_after)
        self.field = field


REQUEST = "_request_id"
"""Where the client notes in a reply the id of its request, as the SDKs do; vendors' support wants it."""


def request_of(reply: object) -> str:
    """Return what a message about a reply ends with: the id of its request, or nothing."""
    found = reply.get(REQUEST) if isinstance(reply, Mapping) else None
    return f" (request {found})" if found else ""


def no_reply(said: object) -> TrialError:
    """Return the error for a reply that does not have the API's shape; another attempt may get another one."""
    shown = {name: said[name] for name in said if name != REQUEST} if isinstance(said, dict) else said
    message = f"the model's endpoint answered with something that is no reply: {quoted(shown)}{request_of(said)}"
    return TrialError(message, stage="model", kind="bad_reply", retryable=True)


def broken_off() -> TrialError:
    """Return the error for a stream that ended before the reply did; another attempt may get all of it."""
    return TrialError("the model's reply ended in the middle", stage="model", kind="bad_reply", retryable=True)


def quoted(said: object) -> str:
    """Return the beginning of what an endpoint said, which may be a whole web page."""
    text = str(said)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def what_failed(error: Exception) -> str:
    """Return what failed; an error of keval's needs no name."""
    return str(error) if isinstance(error, KevalError) else f"{type(error).__name__}: {error}"


def readable(told: object) -> str:
    """Return what a vendor's own tool returned as a text: JSON, if it is none, without what is encrypted."""
    return told if isinstance(told, str) else "" if told is None else json.dumps(_open(told), ensure_ascii=False)


def _open(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _open(value) for name, value in told.items() if not name.startswith("encrypted_")}
    return [_open(value) for value in told] if isinstance(told, list) else told


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


completions_usage = partial(read_usage, "openai-chat")
messages_usage = partial(read_usage, "anthropic")
"""Read the `usage` of a reply."""
