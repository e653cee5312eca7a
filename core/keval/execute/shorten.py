"""Cutting what servers said, and the system prompt, down to what a record holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from keval.recorder import Blob
from keval.records import Transcript

__all__ = ["shorten"]

_PER_CHARACTER = 4
"""Bytes that a character takes at most."""


def shorten(transcript: Transcript, limit: int, keep: Callable[[Blob], object] | None) -> Transcript:
    """Return the transcript with its texts of more than `limit` bytes cut, each with its length and SHA-256.

    These are what tools returned, the system prompt, and what else passed between agent and servers, of which a mapping
    stands for the text: `bytes` and `sha256`. `keep` is given the whole of each, if it is to be kept.
    """

    def cut(text: str | None) -> str | None:
        if text is None or len(text) * _PER_CHARACTER <= limit:
            return text
        content = text.encode("utf-8", "surrogatepass")
        if len(content) <= limit:
            return text
        blob = Blob.of(content, "text/plain")
        if keep is not None:
            keep(blob)
        return f"{content[:limit].decode('utf-8', 'ignore')}… ({len(content)} bytes, SHA-256 {blob.sha256})"

    def cut_json(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if value is None or len(content := orjson.dumps(value, default=dict)) <= limit:
            return value
        blob = Blob.of(content, "application/json")
        if keep is not None:
            keep(blob)
        return {"bytes": len(content), "sha256": blob.sha256}

    calls = [attrs.evolve(call, result=cut(call.result), error=cut(call.error)) for call in transcript.tool_calls]
    messages = [
        attrs.evolve(message, text=cut(message.text) or "") if message.role == "tool" else message
        for message in transcript.messages
    ]
    exchanges = [
        attrs.evolve(exchange, params=cut_json(exchange.params) or {}, result=cut_json(exchange.result))
        for exchange in transcript.exchanges
    ]
    return attrs.evolve(
        transcript,
        tool_calls=tuple(calls),
        messages=tuple(messages),
        exchanges=tuple(exchanges),
        instructions=cut(transcript.instructions),
    )
