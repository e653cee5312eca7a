"""OpenAI's wire protocols: Chat Completions and Responses."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from keval_gateway.chat import ChatCall, ChatMessage, ChatRequest, ChatTool, ModelFault
from keval_gateway.protocols.protocol import (
    WireReply,
    arguments_object,
    frame,
    media,
    pieces,
    plain_text,
    token_limit,
    tool_choice,
)

_FAULT_TYPES = {429: "requests"}
_FAULT_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_KEPT = 4096
"""Responses kept for `previous_response_id`; far more than are in flight at once, and bounded."""


class _OpenAI:
    def fault(self, fault: ModelFault) -> dict[str, Any]:
        """Return OpenAI's error object."""
        kind = _FAULT_TYPES.get(fault.status, "invalid_request_error" if fault.status < 500 else "server_error")
        code = _FAULT_CODES.get(fault.status)
        return {"error": {"message": fault.message, "type": kind, "param": None, "code": code}}


class OpenAIChat(_OpenAI):
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
            max_tokens=token_limit(body, "max_completion_tokens", "max_tokens"),
            stream=bool(body.get("stream")),
            raw=body,
        )

    def render(self, request: ChatRequest, answer: WireReply) -> dict[str, Any]:
        """Return a chat.completion object."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = [_rendered(call) for call in answer.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return {**_head(request, answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def events(self, request: ChatRequest, answer: WireReply) -> Iterator[bytes]:
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
            # As the API streams a call: first its name, then its arguments in pieces.
            rendered["function"]["arguments"] = ""
            yield chunk({"tool_calls": [{"index": index, **rendered}]})
            for piece in pieces(arguments):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish(answer))
        # OpenAI's last chunk has the usage, and no choice.
        if wants_usage:
            yield frame({**head, "choices": [], "usage": _usage(answer)})
        yield b"data: [DONE]\n\n"

    def streamed(self, reply: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a whole reply as one chunk, and the end mark."""
        choices = [{**choice, "message": None, "delta": _delta(choice["message"])} for choice in reply["choices"]]
        yield frame({**reply, "object": "chat.completion.chunk", "choices": choices})
        yield b"data: [DONE]\n\n"


def _delta(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls") or []
    return {**message, "tool_calls": [{"index": index, **call} for index, call in enumerate(calls)]}


def _tool(function: Mapping[str, Any]) -> ChatTool:
    return ChatTool(function["name"], function.get("description") or "", function.get("parameters") or {})


def _call(item: Mapping[str, Any]) -> ChatCall:
    function = item["function"]
    return ChatCall(function["name"], arguments_object(function.get("arguments") or ""), item["id"])


def _rendered(call: ChatCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": orjson.dumps(call.arguments).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _head(request: ChatRequest, answer: WireReply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": answer.created, "model": request.model}


def _finish(answer: WireReply) -> str:
    if answer.cut is not None:
        return {"length": "length", "refusal": "content_filter"}[answer.cut]
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: WireReply) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }


@attrs.define
class OpenAIResponses(_OpenAI):
    """POST /responses, with the stored conversations that `previous_response_id` continues."""

    _stored: OrderedDict[str, tuple[ChatMessage, ...]] = attrs.field(factory=OrderedDict, init=False)

    def parse(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read a request; an earlier response's conversation comes first when it is continued."""
        asked = body["input"]
        items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        previous = body.get("previous_response_id")
        if previous is not None and previous not in self._stored:
            raise ModelFault(400, f"previous_response_id: no response {previous!r} is stored")
        system, messages = _conversation(items, () if previous is None else self._stored[previous])
        choice = body.get("tool_choice")
        forced = choice["name"] if isinstance(choice, dict) else None
        form = (body.get("text") or {}).get("format") or {}
        return ChatRequest(
            wire="openai-responses",
            model=body["model"],
            messages=messages,
            system="\n\n".join(filter(None, (body.get("instructions"), *system))),
            tools=tuple(
                ChatTool(name, item.get("description") or "", item.get("parameters") or {})
                for name, (_, item) in _functions(body).items()
            ),
            tool_choice=tool_choice(choice, forced),
            forced_tool=forced,
            response_schema={"type": "object"} if form.get("type") == "json_object" else form.get("schema"),
            max_tokens=token_limit(body, "max_output_tokens"),
            stream=bool(body.get("stream")),
            raw=body,
        )

    def render(self, request: ChatRequest, answer: WireReply) -> dict[str, Any]:
        """Return a response object, and keep the conversation unless `store` is false, as the API does."""
        if request.raw.get("store") is not False:
            said = ChatMessage("assistant", answer.text, answer.calls)
            self._stored[f"resp_{answer.id}"] = (*request.messages, said)
            while len(self._stored) > _KEPT:
                self._stored.popitem(last=False)
        functions = _functions(request.raw)
        output = [_message(answer)] if answer.text or not answer.calls else []
        output += [_call_item(answer, index, functions) for index in range(len(answer.calls))]
        return _response(request, answer, "incomplete" if answer.cut else "completed", output)

    def events(self, request: ChatRequest, answer: WireReply) -> Iterator[bytes]:
        """Yield the response's events."""
        yield from self.streamed(self.render(request, answer))

    def streamed(self, reply: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a whole reply as its events; `sequence_number` counts from 0."""
        for number, event in enumerate(_events(reply)):
            yield frame({**event, "sequence_number": number}, event["type"])


def _functions(body: Mapping[str, Any]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return the namespace (`""` for none) and the definition of every function, by the name that it has here.

    They are those of the request, and those that items of the conversation add.
    """
    functions: dict[str, tuple[str, Mapping[str, Any]]] = {}
    items = body["input"] if isinstance(body["input"], list) else ()
    # The Responses API may add tools in the conversation, too.
    added = [item["tools"] for item in items if item.get("type") == "additional_tools"]
    for item in itertools.chain(body.get("tools") or (), *added):
        if item["type"] == "function":
            functions[item["name"]] = ("", item)
        # As Codex offers the tools of each MCP server.
        elif item["type"] == "namespace":
            for function in (each for each in item["tools"] if each["type"] == "function"):
                functions[_full_name(item["name"], function["name"])] = (item["name"], function)
    return functions


def _full_name(namespace: str | None, name: str) -> str:
    return f"{namespace}__{name}" if namespace else name


def _conversation(
    items: Sequence[Mapping[str, Any]], earlier: Sequence[ChatMessage]
) -> tuple[list[str], tuple[ChatMessage, ...]]:
    """Return the system texts and the messages; consecutive calls of the assistant become one message."""
    system: list[str] = []
    messages = list(earlier)
    names = {call.id: call.name for message in messages for call in message.calls}
    for item in items:
        match item.get("type", "message"):
            case "message":
                text = plain_text(item.get("content"))
                if item["role"] in ("system", "developer"):
                    system.append(text)
                else:
                    messages.append(ChatMessage(item["role"], text, media=media(item.get("content"))))
            case "function_call":
                name = _full_name(item.get("namespace"), item["name"])
                call = ChatCall(name, arguments_object(item.get("arguments") or ""), item["call_id"])
                names[call.id] = call.name
                if messages and messages[-1].role == "assistant":
                    messages[-1] = attrs.evolve(messages[-1], calls=(*messages[-1].calls, call))
                else:
                    messages.append(ChatMessage("assistant", calls=(call,)))
            case "function_call_output":
                call_id = item["call_id"]
                if call_id not in names:
                    raise ModelFault(400, f"input: no tool call found for function call output with call_id {call_id}")
                text, shown = plain_text(item.get("output")), media(item.get("output"))
                messages.append(ChatMessage("tool", text, call_id=call_id, name=names[call_id], media=shown))
            case "reasoning" | "additional_tools":
                continue
            case kind:
                raise ModelFault(400, f"input: items of type {kind!r} are not served here")
    if not messages and not system:
        raise ModelFault(400, "input: at least one message is needed")
    return system, tuple(messages)


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(answer: WireReply) -> dict[str, Any]:
    item = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "status": "completed"}
    return {**item, "content": [_part(answer.text)]}


def _call_item(answer: WireReply, index: int, functions: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    call = answer.calls[index]
    namespace, function = functions.get(call.name, ("", {"name": call.name}))
    return {
        "id": f"fc_{answer.id}{index:02d}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": function["name"],
        **({"namespace": namespace} if namespace else {}),
        "arguments": orjson.dumps(call.arguments).decode(),
    }


def _response(request: ChatRequest, answer: WireReply, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    raw = request.raw
    reason = {"length": "max_output_tokens", "refusal": "content_filter"}.get(answer.cut or "")
    usage = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": answer.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": raw.get("instructions"),
        "metadata": raw.get("metadata") or {},
        "model": request.model,
        "output": output,
        "parallel_tool_calls": raw.get("parallel_tool_calls", True),
        "previous_response_id": raw.get("previous_response_id"),
        "temperature": raw.get("temperature"),
        "text": raw.get("text") or {"format": {"type": "text"}},
        "tool_choice": raw.get("tool_choice") or "auto",
        "tools": raw.get("tools") or [],
        "top_p": raw.get("top_p"),
        "usage": usage,
    }


def _events(finished: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**finished, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(finished["output"]):
        place = {"output_index": index, "item_id": item.get("id")}
        if item["type"] == "message":
            yield _added(index, {**item, "status": "in_progress", "content": []})
            for number, part in enumerate(item["content"]):
                yield from _part_events(part, {**place, "content_index": number})
        elif item["type"] != "function_call":
            yield _added(index, item)
        else:
            yield _added(index, {**item, "status": "in_progress", "arguments": ""})
            for piece in pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            yield {
                "type": "response.function_call_arguments.done",
                **place,
                "name": item["name"],
                "arguments": item["arguments"],
            }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{finished['status']}", "response": finished}


def _added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _part_events(part: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    field, more = ("refusal", {}) if part["type"] == "refusal" else ("text", {"logprobs": list[Any]()})
    yield {"type": "response.content_part.added", **place, "part": {**part, field: ""}}
    for piece in pieces(part[field]):
        yield {"type": f"response.{part['type']}.delta", **place, "delta": piece, **more}
    yield {"type": f"response.{part['type']}.done", **place, field: part[field], **more}
    yield {"type": "response.content_part.done", **place, "part": part}
