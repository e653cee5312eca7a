"""Gemini generateContent and streamGenerateContent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from keval_gateway.chat import ChatCall, ChatMessage, ChatRequest, ChatTool, ModelFault
from keval_gateway.protocols.protocol import WireReply, frame, media, pieces, token_limit

_FAULT_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


class GeminiContent:
    """POST /models/{model}:generateContent; the gateway adds `model` and `stream` from the URL to the body."""

    def parse(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read a request; function responses become messages of their own."""
        messages: list[ChatMessage] = []
        for content in body["contents"]:
            messages.extend(_messages(content))
        if not messages:
            raise ModelFault(400, "contents are required")
        settings = body.get("generationConfig") or {}
        calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        allowed = list(calling.get("allowedFunctionNames") or ())
        declared = [item for tool in body.get("tools") or () for item in tool.get("functionDeclarations") or ()]
        mode = str(calling.get("mode", "AUTO")).upper()
        return ChatRequest(
            wire="gemini",
            model=body["model"],
            messages=tuple(messages),
            system=_text((body.get("systemInstruction") or {}).get("parts") or ()),
            tools=tuple(_tool(item) for item in declared if not allowed or item["name"] in allowed),
            tool_choice="required" if mode == "ANY" else "none" if mode == "NONE" else "auto",
            forced_tool=allowed[0] if mode == "ANY" and len(allowed) == 1 else None,
            response_schema=_response_schema(settings),
            seed=settings.get("seed"),
            max_tokens=token_limit(settings, "maxOutputTokens"),
            stream=bool(body.get("stream")),
            raw=body,
        )

    def render(self, request: ChatRequest, answer: WireReply) -> dict[str, Any]:
        """Return a GenerateContentResponse."""
        parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
        return _response(request, answer, parts + _call_parts(answer), last=True)

    def events(self, request: ChatRequest, answer: WireReply) -> Iterator[bytes]:
        """Yield partial responses; calls come whole, and the last carries the finish reason and the usage."""
        for piece in pieces(answer.text):
            yield frame(_response(request, answer, [{"text": piece}], last=False))
        yield frame(_response(request, answer, _call_parts(answer) or [{"text": ""}], last=True))

    def streamed(self, reply: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a whole reply as the one event of a stream."""
        yield frame(reply)

    def fault(self, fault: ModelFault) -> dict[str, Any]:
        """Return Google's error object."""
        fallback = "FAILED_PRECONDITION" if fault.status < 500 else "UNKNOWN"
        status = _FAULT_STATUSES.get(fault.status, fallback)
        return {"error": {"code": fault.status, "message": fault.message, "status": status}}


def _text(parts: Any) -> str:
    return "\n".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))


def _messages(content: Mapping[str, Any]) -> Iterator[ChatMessage]:
    parts = content.get("parts") or ()
    text = _text(parts)
    if content.get("role") == "model":
        calls = tuple(
            ChatCall(call["name"], call.get("args") or {}, call.get("id") or "")
            for call in (part["functionCall"] for part in parts if "functionCall" in part)
        )
        yield ChatMessage("assistant", text, calls)
        return
    for part in parts:
        if "functionResponse" in part:
            answered = part["functionResponse"]
            result = answered.get("response") or {}
            yield ChatMessage(
                "tool",
                orjson.dumps(result).decode(),
                call_id=answered.get("id") or "",
                name=answered["name"],
                error="error" in result or result.get("isError") is True,
                media=media(answered.get("parts")),
            )
    if text or media(parts):
        yield ChatMessage("user", text, media=media(parts))


def _tool(item: Mapping[str, Any]) -> ChatTool:
    # Inside declarations and schemas the SDK sends some keys in snake_case, and Google's JSON takes both.
    declared = {_camel(key): value for key, value in item.items()}
    parameters = declared.get("parametersJsonSchema") or _json_schema(declared.get("parameters") or {})
    return ChatTool(declared["name"], declared.get("description") or "", parameters)


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(map(str.capitalize, others))


def _response_schema(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if plain := settings.get("responseJsonSchema"):
        return dict(plain)
    if schema := settings.get("responseSchema"):
        return _json_schema(schema)
    return {"type": "object"} if settings.get("responseMimeType") == "application/json" else None


def _json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Turn Google's OpenAPI-like schema (upper-case types, `nullable`, counts as strings) into a JSON Schema."""
    out: dict[str, Any] = {}
    for name, value in schema.items():
        key = _camel(name)
        if key == "type":
            kind = str(value).lower()
            out["type"] = [kind, "null"] if schema.get("nullable") else kind
        elif key == "properties":
            out[key] = {field: _json_schema(inner) for field, inner in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = _json_schema(value)
        elif key in ("anyOf", "prefixItems"):
            out[key] = [_json_schema(inner) for inner in value]
        elif key in _COUNTS:
            out[key] = int(value)
        elif key not in ("nullable", "propertyOrdering", "example"):
            out[key] = value
    if schema.get("nullable") and "enum" in out:
        out["enum"] = [*out["enum"], None]
    return out


def _call_parts(answer: WireReply) -> list[dict[str, Any]]:
    return [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in answer.calls]


def _response(request: ChatRequest, answer: WireReply, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage: dict[str, Any] = {"promptTokenCount": answer.input_tokens, "totalTokenCount": answer.input_tokens}
    if last:
        candidate["finishReason"] = {None: "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[answer.cut]
        usage = {
            "promptTokenCount": answer.input_tokens,
            # Gemini counts thoughts beside the candidates, other vendors within the output.
            "candidatesTokenCount": answer.output_tokens - answer.reasoning_tokens,
            "totalTokenCount": answer.input_tokens + answer.output_tokens,
        }
        if answer.cached_tokens:
            usage["cachedContentTokenCount"] = answer.cached_tokens
        if answer.reasoning_tokens:
            usage["thoughtsTokenCount"] = answer.reasoning_tokens
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": request.model, "responseId": answer.id}
