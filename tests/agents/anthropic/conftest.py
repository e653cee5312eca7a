"""Replies of the Anthropic Messages API, with no more in them than it always sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Json = dict[str, Any]


@pytest.fixture
def message() -> Callable[..., Json]:
    """A reply of these content blocks; a text stands for a text block."""

    def build(*blocks: str | Json, stop_reason: str = "end_turn", **usage: Any) -> Json:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        tokens = {"input_tokens": 10, "output_tokens": 5, **usage}
        return {"type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason, "usage": tokens}

    return build


@pytest.fixture
def use() -> Callable[..., Json]:
    """A tool call among a reply's blocks: `use("t1", "add", a=1)`."""

    def build(call: str, name: str, **arguments: Any) -> Json:
        return {"type": "tool_use", "id": call, "name": name, "input": arguments}

    return build
