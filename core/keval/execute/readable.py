"""Whether a model's answer can be read at all, told before an agent sees it."""

from __future__ import annotations

import json

from keval.models import ModelRequest, ModelResponse

__all__ = ["unreadable"]

_CALLS = ("/chat/completions", "/responses", "/messages", ":generateContent", ":streamGenerateContent")
"""How the paths of model calls end; the responses to other requests may be anything."""


async def unreadable(request: ModelRequest, response: ModelResponse) -> str | None:
    """Say why a response that claims success cannot be an answer, or return `None`.

    An answer is JSON, or a stream of events. What Python reads beyond JSON (NaN, lone surrogates) is left to agents.
    The response has been read, unless it is a stream.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    called = request.method == "POST" and request.path.partition("?")[0].endswith(_CALLS)
    if not called or not 200 <= response.status < 300 or kind == "text/event-stream":
        return None
    try:
        json.loads(await response.read())
    except RecursionError:  # it is JSON so far, and whoever reads it will say more
        return None
    except ValueError as error:
        return f"the response of type {kind or 'unknown'} is no JSON: {error}"
    return None
