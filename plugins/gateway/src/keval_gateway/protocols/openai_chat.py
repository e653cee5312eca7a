"""OpenAI Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import orjson

from keval_gateway.chat import ChatCall, ChatMessage, ChatRequest, ChatTool, ModelFault
from keval_gateway.protocols.protocol import Answer, arguments_object, frame, media, pieces, plain_text, tool_choice

__all__ = ["OpenAIChat", "openai_fault"]

_FAULT_TYPES = {401: "invalid_request_error", 429: "requests", 404: "invalid_request_error"}
_FAULT_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


def openai_fault(fault: ModelFault) -> dict[str, Any]:
    """Return an error's body as both OpenAI protocols send it."""
    kind = _FAULT_TYPES.get(fault.status, "invalid_request_error" if fault.status < 500 else "server_error")
    return {
        "error": {"message": fault.message, "type": kind, "param": None, "code": _FAULT_CODES.get(fault.status)},
    }


class OpenAIChat:
    """POST /chat/completions."""

    def parse(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read a request; system and developer messages are joined into `system`."""
        system: list[str] = []
        messages: list[ChatMessage] = []
        names: dict[str, str] = {}
        for item in body["messages"]:
            text = plain_text(item.get("content"))
            match item["role"]:
                case "system" | "developer":
                    system.append(text)
                case "user":
                    shown = media(item.get("content"))
                    if shown and not text and messages and messages[-1].role == "tool":
                        # Tool messages take text only, so what a tool showed comes in a message of the user's.
                        messages[-1] = attrs.evolve(messages[-1], media=shown)
                    else:
                        messages.append(ChatMessage("user", text, media=shown))
                case "assistant":
                    calls = tuple(_call(call) for call in item.get("tool_calls") or ())
                    names.update((call.id, call.name) for call in calls)
                    messages.append(ChatMessage("assistant", text, calls))
                case "tool":
                    call_id = item["tool_call_id"]
                    messages.append(ChatMessage("tool", text, call_id=call_id, name=names.get(call_id, "")))
                case role:
                    raise ModelFault(400, f"messages: no role {role!r}")
        if not messages and not system:
            raise ModelFault(400, "messages: at least one message is needed")
        choice = body.get("tool_choice")
        forced = choice["function"]["name"] if isinstance(choice, dict) else None
        form = body.get("response_format") or {}
        schema = form["json_schema"].get("schema") if form.get("type") == "json_schema" else None
        return ChatRequest(
            wire="openai-chat",
            model=body["model"],
            messages=tuple(messages),
            system="\n\n".join(system),
            tools=tuple(_tool(item["function"]) for item in body.get("tools") or () if item["type"] == "function"),
            tool_choice=tool_choice(choice, forced),
            forced_tool=forced,
            response_schema={"type": "object"} if form.get("type") == "json_object" else schema,
            seed=body.get("seed"),
            stream=bool(body.get("stream")),
            raw=body,
        )

    def render(self, request: ChatRequest, answer: Answer) -> dict[str, Any]:
        """Return a chat.completion object."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = [_rendered(call) for call in answer.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return {
            **_head(request, answer, "chat.completion"),
            "choices": [choice],
            "usage": _usage(answer),
        }

    def events(self, request: ChatRequest, answer: Answer) -> Iterator[bytes]:
        """Yield chat.completion.chunk objects, the usage when it was asked for, and the end mark."""
        head = _head(request, answer, "chat.completion.chunk")
        wants_usage = bool((request.raw.get("stream_options") or {}).get("include_usage"))

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return frame({**head, "choices": [choice], **({"usage": None} if wants_usage else {})})

        yield chunk({"role": "assistant", "content": "" if answer.text else None})
        for piece in pieces(answer.text):
            yield chunk({"content": piece})
        for index, call in enumerate(answer.calls):
            rendered = _rendered(call)
            arguments = rendered["function"]["arguments"]
            rendered["function"]["arguments"] = ""
            yield chunk({"tool_calls": [{"index": index, **rendered}]})
            for piece in pieces(arguments):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish(answer))
        if wants_usage:
            yield frame({**head, "choices": [], "usage": _usage(answer)})
        yield b"data: [DONE]\n\n"

    def fault(self, fault: ModelFault) -> dict[str, Any]:
        """Return OpenAI's error object."""
        return openai_fault(fault)


def _tool(function: Mapping[str, Any]) -> ChatTool:
    return ChatTool(function["name"], function.get("description") or "", function.get("parameters") or {})


def _call(item: Mapping[str, Any]) -> ChatCall:
    function = item["function"]
    return ChatCall(function["name"], arguments_object(function.get("arguments") or ""), item["id"])


def _rendered(call: ChatCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": orjson.dumps(call.arguments).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _head(request: ChatRequest, answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": answer.created, "model": request.model}


def _finish(answer: Answer) -> str:
    if answer.cut is not None:
        return {"length": "length", "refusal": "content_filter"}[answer.cut]
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }
