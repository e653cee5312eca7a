"""A streamed reply of the Messages API, put together as the API sends it whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from keval.plugin import TranscriptBuilder
from keval_clients import broken_off, no_reply, read_failure, read_json


async def whole_message(events: AsyncIterator[Mapping[str, Any]], builder: TranscriptBuilder) -> dict[str, Any]:
    """Return the message that these events are of; each piece of its text is reported.

    Raises:
        ModelError: the model failed meanwhile.
        TrialError: the stream ended before the reply did, or has not the API's shape.
    """
    message: dict[str, Any] = {}
    async for event in events:
        try:
            match event["type"]:
                case "message_start":
                    message = {**event["message"], "content": []}
                case "content_block_start":
                    message["content"].append({**event["content_block"]})
                case "content_block_delta":
                    _add(message["content"][event["index"]], event["delta"], builder)
                case "message_delta":
                    message.update(event["delta"])
                    # The API tells the input at the beginning and the output at the end, so later events replace counts
                    # one by one.
                    message["usage"] = {**(message.get("usage") or {}), **_known(event.get("usage") or {})}
                case "message_stop":
                    return {**message, "content": [_closed(block, message) for block in message["content"]]}
                case "error":
                    raise read_failure(event["error"])
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise no_reply(event) from error
    raise broken_off()


def _add(block: dict[str, Any], delta: Mapping[str, Any], builder: TranscriptBuilder) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
            builder.streamed(delta["text"])
        case "input_json_delta":
            block["written"] = block.get("written", "") + delta["partial_json"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]


def _closed(block: dict[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block with the input of its call, which arrives as a text of JSON."""
    written = block.pop("written", "")
    if not written:
        return block
    try:
        return {**block, "input": read_json(written)}
    except ValueError as error:
        # Where the reply was cut off with it, the call is not made, and says so.
        if message.get("stop_reason") in {"end_turn", "tool_use"}:
            raise no_reply(written) from error
        return block


def _known(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {name: count for name, count in usage.items() if count is not None}
