"""Replies of both OpenAI APIs, with no more in them than the APIs always send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from keval_mcp.loop import Tool

Json = dict[str, Any]


@pytest.fixture
def completion() -> Callable[..., Json]:
    """A Chat Completions reply: `completion("Hello.", ("call_1", "add", {"a": 1}), reasoning_content="Hm.")`."""

    def build(
        text: str | None = None,
        *calls: tuple[str, str, Any],
        usage: Json | None = None,
        finish: str = "stop",
        **more: Any,
    ) -> Json:
        message: Json = {"role": "assistant", "content": text, "refusal": None, **more}
        if calls:
            message["tool_calls"] = [
                {"id": call, "type": "function", "function": {"name": name, "arguments": _written(arguments)}}
                for call, name, arguments in calls
            ]
        return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}

    return build


@pytest.fixture
def response() -> Callable[..., Json]:
    """A Responses reply of these output items; a text stands for a message."""

    def build(*items: str | Json, usage: Json | None = None, status: str = "completed", **more: Any) -> Json:
        output = [_message(item) if isinstance(item, str) else item for item in items]
        return {"id": "resp_1", "object": "response", "status": status, "output": output, "usage": usage, **more}

    return build


@pytest.fixture
def called() -> Callable[..., Json]:
    """A function call among a Responses reply's output items."""

    def build(id: str, name: str, arguments: Any) -> Json:
        written = _written(arguments)
        return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": written}

    return build


@pytest.fixture
def add() -> Tool:
    """A tool under a name that no model API takes."""
    return Tool("sums", "sums/add", "sums_add", "Add up.", {"type": "object", "properties": {"a": {"type": "number"}}})


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _message(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
