"""Streamed replies of both OpenAI APIs, put together as the APIs send them whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from keval.plugin import TranscriptBuilder
from keval_clients import broken_off, no_reply, read_failure, text_in

_GROWING = frozenset({"arguments", "content", "data", "reasoning", "reasoning_content", "refusal", "summary", "text"})
"""The fields of a message of which each chunk has a piece; of any other text it has all, some endpoints repeatedly."""


async def whole_completion(chunks: AsyncIterator[Mapping[str, Any]], builder: TranscriptBuilder) -> dict[str, Any]:
    """Return the completion that these chunks are pieces of; each piece of its text is reported.

    Raises:
        TrialError: the model failed meanwhile, the stream ended before the reply, or has not the API's shape.
    """
    message: dict[str, Any] = {"role": "assistant", "content": None}
    finished, told = None, dict[str, Any]()
    async for chunk in chunks:
        if error := chunk.get("error"):
            raise read_failure(error)
        try:
            told |= {name: chunk[name] for name in ("usage", "service_tier") if chunk.get(name)}
            # Only one reply was asked for.
            for choice in chunk["choices"][:1]:
                delta = choice.get("delta") or {}
                piece = delta.get("content") or delta.get("refusal") or ""
                if isinstance(piece, list) or isinstance(message["content"], list):
                    message["content"] = _chunks(message["content"])
                    delta = {**delta, "content": None}
                    _extend(message["content"], _chunks(piece))
                _add(message, delta)
                builder.streamed(text_in(piece))
                finished = choice.get("finish_reason") or finished
        except (AttributeError, KeyError, TypeError) as error:
            raise no_reply(chunk) from error
    if finished is None:
        raise broken_off()
    for call in message.get("tool_calls") or ():
        call.pop("index", None)  # it is of a stream, and no API takes it back
    return {"choices": [{"message": message, "finish_reason": finished}], **told}


async def whole_response(events: AsyncIterator[Mapping[str, Any]], builder: TranscriptBuilder) -> dict[str, Any]:
    """Return the response with which these events end; each piece of its text is reported.

    Raises:
        TrialError: the model failed meanwhile, or the stream ended before the reply.
    """
    async for event in events:
        match event:
            case {"type": "response.output_text.delta" | "response.refusal.delta", "delta": str(piece)}:
                builder.streamed(piece)
            case {"type": "response.completed" | "response.incomplete" | "response.failed", "response": dict(whole)}:
                return whole
            case {"error": dict(error)} | ({"type": "error"} as error):
                raise read_failure(error)
    raise broken_off()


def _chunks(content: Any) -> list[dict[str, Any]]:
    """Return the content of a message, or a piece of it, as the chunks in which Mistral has it."""
    return content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []


def _extend(chunks: list[dict[str, Any]], more: Sequence[dict[str, Any]]) -> None:
    for chunk in more:
        kind, last = chunk["type"], chunks[-1] if chunks else {}
        if kind not in {"text", "thinking"} or last.get("type") != kind:
            chunks.append(chunk)
        elif kind == "text":
            last["text"] += chunk["text"]
        else:
            _extend(last["thinking"], chunk["thinking"])


def _add(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for name, value in delta.items():
        known = whole.get(name)
        if value is None:
            whole.setdefault(name, None)
        elif isinstance(value, list):
            whole[name] = _added(known or [], value)
        elif isinstance(value, Mapping) and isinstance(known, dict):
            _add(known, value)
        elif isinstance(known, str) and name in _GROWING:
            whole[name] = known + value
        elif value != "" or known is None:
            whole[name] = {**value} if isinstance(value, Mapping) else value


def _added(items: list[Any], deltas: list[Any]) -> list[Any]:
    """Add pieces of items to those that they belong to, by their index; one with another id is another one."""
    for delta in deltas:
        if not isinstance(delta, Mapping):
            items.append(delta)
            continue
        known = next((item for item in reversed(items) if _continues(delta, item)), None)
        if known is None:
            items.append({})
            known = items[-1]
        _add(known, delta)
    return items


def _continues(delta: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    if "index" not in delta or delta["index"] != item.get("index"):
        return False
    return not delta.get("id") or delta["id"] == item.get("id", delta["id"])
