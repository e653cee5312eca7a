"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from keval_gateway.chat import ChatCall, ChatMessage, ChatRequest, ChatTool, ModelFault, ToolChoice
from keval_gateway.protocols.protocol import WireReply, frame, media, pieces, plain_text, token_limit

_FAULT_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}

_CHOICES: Mapping[str, ToolChoice] = {"auto": "auto", "none": "none", "any": "required", "tool": "required"}


class AnthropicMessages:
    """POST /v1/messages."""

    def parse(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read a request; a user message's tool results become messages of their own, before its text.

        System messages among the others, which Claude Code sends to newer models, are read as part of `system`.

        Raises, as all protocols do:
            ModelFault: what the vendor's API would refuse too.
            KeyError, TypeError, ValueError, AttributeError: the body does not have the protocol's shape.
        """
        if "max_tokens" not in body:
            raise ModelFault(400, "max_tokens: Field required")
        messages: list[ChatMessage] = []
        names: dict[str, str] = {}
        system = [plain_text(body.get("system"))]
        for item in body["messages"]:
            if item["role"] == "system":
                system.append(plain_text(item["content"]))
            else:
                messages.extend(_messages(item, names))
        if not messages:
            raise ModelFault(400, "messages: at least one message is required")
        choice = body.get("tool_choice") or {"type": "auto"}
        form = (body.get("output_config") or {}).get("format") or {}
        return ChatRequest(
            wire="anthropic",
            model=body["model"],
            messages=tuple(messages),
            system="\n\n".join(filter(None, system)),
            tools=tuple(
                ChatTool(item["name"], item.get("description") or "", item["input_schema"])
                for item in body.get("tools") or ()
                if "input_schema" in item
            ),
            tool_choice=_CHOICES[choice["type"]],
            forced_tool=choice.get("name"),
            response_schema=form.get("schema"),
            max_tokens=token_limit(body, "max_tokens"),
            stream=bool(body.get("stream")),
            raw=body,
        )

    def render(self, request: ChatRequest, answer: WireReply) -> dict[str, Any]:
        """Return a message object."""
        blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in answer.calls
        ]
        return {
            "id": f"msg_{answer.id}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": blocks,
            "stop_reason": _stop(answer),
            "stop_sequence": None,
            "usage": _usage(answer),
        }

    def events(self, request: ChatRequest, answer: WireReply) -> Iterator[bytes]:
        """Yield the message's events."""
        yield from self.streamed(self.render(request, answer))

    def streamed(self, reply: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a whole reply as its events, from message_start to message_stop."""
        for event in _events(reply):
            yield frame(event, event["type"])

    def fault(self, fault: ModelFault) -> dict[str, Any]:
        """Return Anthropic's error object."""
        kind = _FAULT_TYPES.get(fault.status, "invalid_request_error" if fault.status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": fault.message}, "request_id": None}


def _messages(item: Mapping[str, Any], names: dict[str, str]) -> Iterator[ChatMessage]:
    content = item["content"]
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if item["role"] == "assistant":
        calls = tuple(
            ChatCall(block["name"], block["input"], block["id"]) for block in blocks if block["type"] == "tool_use"
        )
        names.update((call.id, call.name) for call in calls)
        yield ChatMessage("assistant", "\n".join(texts), calls)
        return
    if item["role"] != "user":
        raise ModelFault(400, f"messages: no role {item['role']!r}")
    for block in blocks:
        if block["type"] == "tool_result":
            call_id = block["tool_use_id"]
            if call_id not in names:
                raise ModelFault(400, f"messages: unexpected tool_use_id found in tool_result blocks: {call_id}")
            yield ChatMessage(
                "tool",
                plain_text(block.get("content")),
                call_id=call_id,
                name=names[call_id],
                error=bool(block.get("is_error")),
                media=media(block.get("content")),
            )
    if texts or media(blocks):
        yield ChatMessage("user", "\n".join(texts), media=media(blocks))


def _stop(answer: WireReply) -> str:
    if answer.cut is not None:
        return {"length": "max_tokens", "refusal": "refusal"}[answer.cut]
    return "tool_use" if answer.calls else "end_turn"


def _usage(answer: WireReply) -> dict[str, Any]:
    """Return the token counts; here `input_tokens` excludes the cached ones."""
    return {
        "input_tokens": answer.input_tokens - answer.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": answer.cached_tokens,
        "output_tokens": answer.output_tokens,
    }


_GROWS = {
    "text": (("text_delta", "text", "text"),),
    "thinking": (("thinking_delta", "thinking", "thinking"), ("signature_delta", "signature", "signature")),
    "tool_use": (("input_json_delta", "input", "partial_json"),),
}
"""By a block's type: the kinds of what it grows by, each with the field of the block, and of what is added."""


def _events(reply: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    ended = {name: reply.get(name) for name in ("stop_reason", "stop_sequence")}
    usage = reply.get("usage") or {}
    begun = {**reply, **dict.fromkeys(ended), "content": [], "usage": {**usage, "output_tokens": 1}}
    # As in the API: the output so far at the beginning, and all of it in `message_delta`.
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(reply["content"]):
        grows = [(kind, block[field], part) for kind, field, part in _GROWS.get(block["type"], ()) if field in block]
        empty = {field: {} if field == "input" else "" for _, field, _ in _GROWS.get(block["type"], ())}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        for kind, whole, part in grows:
            for piece in pieces(whole if isinstance(whole, str) else orjson.dumps(whole).decode()):
                yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, part: piece}}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}
