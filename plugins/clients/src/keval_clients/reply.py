"""A reply that is none, as an error."""

from __future__ import annotations

from keval.plugin import TrialError

__all__ = ["broken_off", "no_reply", "quoted"]

_QUOTED = 1000


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
