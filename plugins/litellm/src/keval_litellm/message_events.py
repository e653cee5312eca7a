"""A message of Anthropic's Messages API as the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson


def message_events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream that bring a whole message, each block in one piece."""
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(message["content"]):
        start: Mapping[str, Any] = block
        deltas: list[dict[str, Any]] = []
        match block:
            case {"type": "text", "text": text}:
                start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": text}]
            case {"type": "tool_use", "input": given}:
                partial = {"type": "input_json_delta", "partial_json": orjson.dumps(given).decode()}
                start, deltas = {**block, "input": {}}, [partial]
            case {"type": "thinking", "thinking": thought, **others}:
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": thought}]
                if signature := others.get("signature"):
                    deltas.append({"type": "signature_delta", "signature": signature})
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {name: message.get(name) for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": ending, "usage": message["usage"]}
    yield {"type": "message_stop"}
