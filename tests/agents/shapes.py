"""A vendor on loopback that answers by the name of the model: each is a shape that vendors' replies and errors have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import attrs

from keval.records.models import Wire
from tests.attacks.vendor import Answered, answering

Body: TypeAlias = dict[str, Any]
ANSWER = "Paris is the answer."
_MODEL = re.compile(r"/models/([^:]+):")
_WIRES: Mapping[str, Wire] = {"completions": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}


@attrs.frozen
class Asked:
    """A request as it arrived."""

    wire: Wire
    model: str
    body: Body

    @property
    def has_result(self) -> bool:
        """Whether it tells what a tool returned."""
        told = json.dumps(self.body)
        return any(
            mark in told for mark in ('"tool_call_id"', "function_call_output", "tool_result", "functionResponse")
        )


@attrs.frozen
class Said:
    """An answer: an HTTP status, and a body, which is JSON unless it is bytes."""

    body: object
    status: int = 200
    type: str = "application/json"
    headers: Mapping[str, str] = attrs.field(factory=dict)


Respond: TypeAlias = Callable[[Asked], Said]


def reply(wire: Wire, text: str = ANSWER) -> Body:
    """A reply as each API documents it."""
    usage = {"input_tokens": 11, "output_tokens": 5}
    match wire:
        case "openai-chat":
            message: Any = {"role": "assistant", "content": text, "refusal": None}
            return {
                "id": "c1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
            }
        case "openai-responses":
            content: Any = [{"type": "output_text", "text": text, "annotations": []}]
            message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
            return {
                "id": "r1",
                "object": "response",
                "created_at": 1,
                "status": "completed",
                "model": "m",
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "output": [message],
                "usage": {**usage, "total_tokens": 16},
            }
        case "anthropic":
            return {
                "id": "m1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}],
                "stop_sequence": None,
                "usage": usage,
            }
        case "gemini":
            content = {"role": "model", "parts": [{"text": text}]}
            counts = {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}
            return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": counts}


def calling(asked: Asked, arguments: Body) -> Body:
    """A reply that calls the first tool of the request."""
    told = reply(asked.wire)
    written = json.dumps(arguments)
    tool = asked.body["tools"][0]
    match asked.wire:
        case "openai-chat":
            function = {"name": tool["function"]["name"], "arguments": written}
            calls = [{"id": "call_1", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            told["choices"][0].update(message=message, finish_reason="tool_calls")
        case "openai-responses":
            call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool["name"]}
            told["output"] = [{**call, "arguments": written, "status": "completed"}]
        case "anthropic":
            told["content"] = [{"type": "tool_use", "id": "call_1", "name": tool["name"], "input": arguments}]
            told["stop_reason"] = "tool_use"
        case "gemini":
            name = tool["functionDeclarations"][0]["name"]
            told["candidates"][0]["content"]["parts"] = [{"functionCall": {"name": name, "args": arguments}}]
    return told


def verdict(asked: Asked) -> Body:
    """A judge's reply that has all points, in the form that it was asked for."""
    if asked.wire == "anthropic":
        schema = asked.body["output_config"]["format"]["schema"]
    else:
        schema = asked.body["response_format"]["json_schema"]["schema"]
    good = {key: {"reasoning": "It is right.", "score": 5} for key in schema["properties"]}
    return reply(asked.wire, json.dumps({**good, **({"unverified_claims": []} if "unverified_claims" in good else {})}))


@attrs.define
class Vendor:
    """Answers requests for `shape--column` as the shape does, and keeps what it was asked by these names."""

    shapes: Mapping[str, Respond]
    asked: dict[str, list[Body]] = attrs.field(factory=dict)

    def answer(self, path: str, body: Body) -> Said:
        found = _MODEL.search(path)
        model = found[1] if found else body["model"]
        asked = Asked("gemini" if found else _WIRES[path.rpartition("/")[2]], model, body)
        self.asked.setdefault(model, []).append(body)
        return self.shapes[model.partition("--")[0]](asked)


@contextmanager
def serving(vendor: Vendor) -> Iterator[Mapping[str, str]]:
    """Serve a vendor in a thread, and yield the environment that leads to it."""

    def answer(path: str, body: bytes) -> Answered:
        said = vendor.answer(path, json.loads(body))
        content = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        return said.status, {"content-type": said.type, **said.headers}, content

    with answering(answer) as environ:
        yield environ
