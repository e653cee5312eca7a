"""Sampling: a server's request for a model's text (`sampling/createMessage`), as a request to a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp.types import INVALID_PARAMS

from keval.records.models import Model
from keval.records.usage import Usage
from keval_clients import anthropic_client, completions_usage, messages_usage, no_reply, openai_client, text_in

_REASONS: Mapping[Any, str] = {"length": "maxTokens", "max_tokens": "maxTokens", "stop_sequence": "stopSequence"}
"""Why a model stopped before it had ended its turn, in the words of OpenAI and Anthropic, and in those of MCP."""


async def ask(model: Model, params: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[dict[str, Any], Usage]:
    """Ask a model what a server wants to know, and return the server's result and the tokens.

    The model is the client's to choose, so that `modelPreferences` say nothing, and no context of servers is added.

    Raises:
        MCPError: the request is none that can be passed on.
        TrialError: there is no answer.
    """
    wire, url, endpoint = model.reach("openai-chat", "anthropic")
    is_chat = wire == "openai-chat"
    try:
        body = {"model": endpoint.model, "temperature": params.get("temperature"), **_body(params, is_chat=is_chat)}
    except (KeyError, TypeError) as error:
        raise MCPError(INVALID_PARAMS, "this client's model is asked with maxTokens, and texts alone") from error
    client = (openai_client if is_chat else anthropic_client)(url, endpoint)
    try:
        sent = {name: value for name, value in body.items() if value is not None}
        reply = await client.post("/chat/completions" if is_chat else "/v1/messages", sent, headers)
    finally:
        await client.aclose()
    try:
        choice = reply["choices"][0] if is_chat else reply
        text = text_in(choice["message"].get("content") if is_chat else choice["content"])
        reason = choice.get("finish_reason" if is_chat else "stop_reason")
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise no_reply(reply) from error
    usage = (completions_usage if is_chat else messages_usage)(reply.get("usage"))
    content, named = {"type": "text", "text": text}, str(reply.get("model") or endpoint.model)
    said = {"role": "assistant", "content": content, "model": named, "stopReason": _REASONS.get(reason, "endTurn")}
    return said, attrs.evolve(usage, cost=0.0) if endpoint.simulated else usage


def _body(params: Mapping[str, Any], *, is_chat: bool) -> dict[str, Any]:
    """Return what is said to the model, as its protocol has it. Raises KeyError or TypeError: it is no text."""
    turns = []
    for message in params["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else [message["content"]]
        turns.append({"role": message["role"], "content": "\n".join(block["text"] for block in blocks)})
    system, most, stop = params.get("systemPrompt") or None, params["maxTokens"], params.get("stopSequences") or None
    if not is_chat:
        return {"system": system, "messages": turns, "max_tokens": most, "stop_sequences": stop}
    told = [{"role": "system", "content": system}] if system else []
    return {"messages": [*told, *turns], "max_completion_tokens": most, "stop": stop}
