"""What frameworks show of a model's reasoning is in the transcript, apart from the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keval import Message
from keval_gadk import Gadk
from keval_ms import Ms

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Is it wet?"}]},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Dry.", "annotations": []}],
        },
    ],
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "content": [
        {"type": "thinking", "thinking": "Is it wet?", "signature": "c2ln"},
        {"type": "text", "text": "Dry."},
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.mark.parametrize(
    ("adapter", "api", "answer"),
    [(Gadk, "responses", RESPONSE), (Gadk, "anthropic", MESSAGE), (Ms, "responses", RESPONSE)],
)
def test_reasoning_is_kept_apart_from_the_answer(play: Callable[..., Any], adapter: Any, api: str, answer: Any) -> None:
    played = play(adapter, answer, api=api)

    assert played.error is None
    assert played.transcript.messages[1:] == (Message("assistant", "Dry.", reasoning="Is it wet?"),)
