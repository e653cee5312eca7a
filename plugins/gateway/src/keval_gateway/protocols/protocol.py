"""The answer that a wire protocol renders, and the functions that several share."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs
import orjson

from keval import Usage
from keval_gateway.chat import ChatCall, ChatReply, ChatRequest, ModelFault, ToolChoice

_MEDIA = frozenset(
    {"audio", "document", "file", "image", "image_url", "inlineData", "input_audio", "input_file", "input_image"}
)
"""The types of parts that are no text, over all protocols."""

_CHARACTERS = 4
"""What is counted as a token."""

_PIECE = 24
"""Characters of text per streamed event: a few words, as the vendors send them."""


@attrs.frozen
class WireReply:
    """A reply with the ids and token counts that every protocol needs.

    `id` is 24 hexadecimal digits, `created` a Unix time in seconds, `cut` what ended the reply before its time.
    """

    id: str
    created: int
    text: str
    calls: tuple[ChatCall, ...]
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cut: Literal["length", "refusal"] | None = None


def complete(request: ChatRequest, reply: ChatReply, created: int) -> WireReply:
    """Give a reply its ids and token counts.

    Ids are derived from content, so a repeated run yields the same transcripts; within a conversation they differ
    because the conversation grows. A token is counted as four characters, rounded up. A text that is longer than the
    request's `max_tokens` is cut off there.
    """
    limit = request.max_tokens
    if limit is not None and len(reply.text) > limit * _CHARACTERS:
        cut = attrs.evolve(reply.usage or Usage(), output_tokens=limit)
        reply = attrs.evolve(reply, text=reply.text[: limit * _CHARACTERS], usage=cut, cut="length")
    asked = request.canonical()
    said = orjson.dumps([reply.text, [[call.name, call.arguments] for call in reply.calls]])
    digest = hashlib.sha256(asked + f"\0{request.trial}\0{request.repetition}\0".encode() + said).hexdigest()[:24]
    calls = tuple(
        attrs.evolve(call, id=call.id or f"call_{digest[:16]}{index:02d}") for index, call in enumerate(reply.calls)
    )
    usage = reply.usage or Usage(count_tokens(asked), count_tokens(said))
    return WireReply(
        digest,
        created,
        reply.text,
        calls,
        count_tokens(asked) if usage.input_tokens is None else usage.input_tokens,
        count_tokens(said) if usage.output_tokens is None else usage.output_tokens,
        usage.cached_tokens or 0,
        usage.reasoning_tokens or 0,
        reply.cut,
    )


def count_tokens(content: bytes) -> int:
    """Return about how many tokens content has."""
    return math.ceil(len(content) / _CHARACTERS)


def frame(data: Mapping[str, Any], event: str | None = None) -> bytes:
    """Return one server-sent event."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + orjson.dumps(data) + b"\n\n"


def pieces(text: str) -> Iterator[str]:
    """Cut a text into what is streamed at a time."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def tool_choice(choice: Any, forced: str | None) -> ToolChoice:
    """Read OpenAI's `tool_choice`, a word or the tool to call."""
    if forced is not None or choice == "required":
        return "required"
    return "none" if choice == "none" else "auto"


def token_limit(settings: Mapping[str, Any], *names: str) -> int | None:
    """Return the limit of a reply's length that a request sets by the first of these names that it has.

    Raises ModelFault: it is no whole number from 1.
    """
    name = next((name for name in names if settings.get(name) is not None), None)
    if name is None:
        return None
    limit = settings[name]
    if type(limit) is not int or limit < 1:
        raise ModelFault(400, f"{name} must be a whole number from 1; got {limit!r:.60}")
    return limit


def plain_text(content: Any) -> str:
    """Return the text of a message's content, which is a string, a list of typed parts, or nothing.

    Other values (a tool's structured output) become JSON. Images and the like are left out; see `media`.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part_text(part) for part in content if not _is_media(part))
    return orjson.dumps(content).decode()


def media(content: Any) -> tuple[str, ...]:
    """Return the type and a digest of each image, sound or file among the parts of a message's content."""
    if not isinstance(content, list):
        return ()
    return tuple(
        f"{_kind(part)} {hashlib.sha256(orjson.dumps(part)).hexdigest()}" for part in content if _is_media(part)
    )


def _is_media(part: Any) -> bool:
    return isinstance(part, dict) and _kind(part) in _MEDIA


def _kind(part: Mapping[str, Any]) -> str:
    # Google's JSON takes snake_case, too, and its SDK writes it here.
    return "inlineData" if "inlineData" in part or "inline_data" in part else str(part.get("type", ""))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
        return f"[{part.get('type', 'content')}]"
    return orjson.dumps(part).decode()


def arguments_object(text: str) -> Mapping[str, Any]:
    """Read the arguments of an earlier call, a JSON object in a string; an empty string is no arguments."""
    value = orjson.loads(text) if text.strip() else {}
    if not isinstance(value, dict):
        raise ModelFault(400, f"a tool call's arguments must be a JSON object; got {text[:80]!r}")
    return value
