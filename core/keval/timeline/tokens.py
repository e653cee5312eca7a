"""Tokens of one reply of a model, read from its body as each API writes it, whole or as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from keval.models import Wire
from keval.records import Usage
from keval.tapes import ModelTraffic

__all__ = ["tokens_of"]

_FIELDS: Mapping[Wire, tuple[str, ...]] = {
    "openai-chat": ("usage",),
    "openai-responses": ("usage", "response.usage"),
    "anthropic": ("usage", "message.usage"),
    "gemini": ("usageMetadata",),
}
"""Where a body, or an event of a stream, has its usage."""
_COUNTS: Mapping[Wire, tuple[str, str, str, str]] = {
    "openai-chat": (
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details.cached_tokens",
        "completion_tokens_details.reasoning_tokens",
    ),
    "openai-responses": (
        "input_tokens",
        "output_tokens",
        "input_tokens_details.cached_tokens",
        "output_tokens_details.reasoning_tokens",
    ),
    "anthropic": ("input_tokens", "output_tokens", "cache_read_input_tokens", "output_tokens_details.thinking_tokens"),
    "gemini": ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount"),
}
"""The counts of input, output, cached and reasoning tokens."""


def tokens_of(traffic: ModelTraffic) -> Usage | None:
    """Return the tokens that a reply says it took; `None` if it does not say.

    Of a stream, later counts replace earlier ones, as they are sums. What Anthropic counts apart of its cache is added
    to the input, and what Gemini thinks to the output.
    """
    wire = traffic.request.wire
    told: dict[str, Any] = {}
    for body in _bodies(traffic):
        for field in _FIELDS[wire]:
            usage = _at(body, field)
            if isinstance(usage, dict):
                told |= {name: value for name, value in usage.items() if value is not None}
    if not told:
        return None
    given, written, cached, thought = (_count(told, field) for field in _COUNTS[wire])
    if wire == "anthropic" and given is not None:
        given += (cached or 0) + (_count(told, "cache_creation_input_tokens") or 0)
    if wire == "gemini" and written is not None:
        written += thought or 0
    return Usage(given, written, cached, thought)


def _bodies(traffic: ModelTraffic) -> Iterator[Any]:
    """Yield the JSON values of a body: the one that it is, the items of a list, or the events of a stream."""
    body = b"".join(traffic.chunks)
    streamed = traffic.headers.get("content-type", "").startswith("text/event-stream")
    lines = body.splitlines() if streamed else [body]
    for line in lines:
        if streamed and not line.startswith(b"data:"):
            continue
        try:
            value = orjson.loads(line.removeprefix(b"data:"))
        except orjson.JSONDecodeError:
            continue  # such as the `[DONE]` of a stream
        yield from value if isinstance(value, list) else [value]


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _count(told: Mapping[str, Any], path: str) -> int | None:
    value = _at(told, path)
    # True is an int, too.
    return value if type(value) is int and value >= 0 else None
