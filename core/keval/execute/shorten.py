"""Cutting what tools returned, and the system prompt, down to what a record holds."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from keval.recorder import Blob
from keval.records import Transcript

__all__ = ["shorten"]

_PER_CHARACTER = 4
"""Bytes that a character takes at most."""


def shorten(transcript: Transcript, limit: int, keep: Callable[[Blob], object] | None) -> Transcript:
    """Return the transcript with its texts of more than `limit` bytes cut, each with its length and SHA-256.

    These are what tools returned and the system prompt. `keep` is given the whole of each, if it is to be kept.
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

    calls = [attrs.evolve(call, result=cut(call.result), error=cut(call.error)) for call in transcript.tool_calls]
    messages = [
        attrs.evolve(message, text=cut(message.text) or "") if message.role == "tool" else message
        for message in transcript.messages
    ]
    return attrs.evolve(
        transcript, tool_calls=tuple(calls), messages=tuple(messages), instructions=cut(transcript.instructions)
    )
