"""The complete answer: a reply with the ids and token counts that every protocol needs."""

from __future__ import annotations

import hashlib
import math

import attrs
import orjson

from keval import Usage
from keval_gateway.chat import ChatCall, ChatReply, ChatRequest

__all__ = ["Answer", "complete"]


@attrs.frozen
class Answer:
    """What a protocol renders. `id` is 24 hexadecimal digits, `created` a Unix time in seconds."""

    id: str
    created: int
    text: str
    calls: tuple[ChatCall, ...]
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


def complete(request: ChatRequest, reply: ChatReply, created: int) -> Answer:
    """Give a reply its ids and token counts.

    Ids are derived from content, so a repeated run yields the same transcripts; within a conversation they differ
    because the conversation grows. A token is counted as four characters, rounded up.
    """
    asked = request.canonical()
    said = orjson.dumps([reply.text, [[call.name, call.arguments] for call in reply.calls]])
    digest = hashlib.sha256(asked + f"\0{request.trial}\0{request.repetition}\0".encode() + said).hexdigest()[:24]
    calls = tuple(
        attrs.evolve(call, id=call.id or f"call_{digest[:16]}{index:02d}") for index, call in enumerate(reply.calls)
    )
    usage = reply.usage or Usage(_tokens(asked), _tokens(said))
    return Answer(
        digest,
        created,
        reply.text,
        calls,
        _tokens(asked) if usage.input_tokens is None else usage.input_tokens,
        _tokens(said) if usage.output_tokens is None else usage.output_tokens,
        usage.cached_tokens or 0,
        usage.reasoning_tokens or 0,
    )


def _tokens(content: bytes) -> int:
    return math.ceil(len(content) / 4)
