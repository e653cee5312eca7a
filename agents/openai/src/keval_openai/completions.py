"""A conversation over the Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from keval import Context, Sample
from keval_clients import completions_usage, no_reply
from keval_mcp.loop import Reply, Result
from keval_mcp.sessions import Tool
from keval_openai.written import parameters, read_call, result_content

if TYPE_CHECKING:
    from keval_clients.client import Client

__all__ = ["CompletionsChat"]


@attrs.frozen(eq=False)
class CompletionsChat:
    """A `keval_mcp.loop.Chat`: the messages so far, and what else is in every request."""

    _client: Client
    _headers: Mapping[str, str]
    _options: Mapping[str, Any]
    _messages: list[dict[str, Any]]

    @classmethod
    def start(
        cls, client: Client, sample: Sample, context: Context, tools: Sequence[Tool], options: Mapping[str, Any]
    ) -> CompletionsChat:
        messages = [{"role": "system", "content": context.instructions}] if context.instructions else []
        messages += [{"role": message.role, "content": message.text} for message in sample.history]
        offered = {"tools": [_offer(tool) for tool in tools]} if tools else {}
        return cls(client, context.model_headers, {**options, **offered}, messages)

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    async def ask(self) -> Reply:
        body = {**self._options, "messages": self._messages}
        answered = await self._client.post("/chat/completions", body, self._headers)
        try:
            message = answered["choices"][0]["message"]
            reply = _read(message, answered.get("usage"))
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise no_reply(answered) from error
        # With its calls a message goes back as it came, as some endpoints want to see what the model thought before it
        # called. Of an answer they want to see the text alone.
        self._messages.append(message if reply.calls else {"role": "assistant", "content": reply.text})
        return reply

    def tell(self, results: Sequence[Result]) -> None:
        self._messages.extend(
            {"role": "tool", "tool_call_id": result.id, "content": result_content(result)} for result in results
        )


def _offer(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.alias, "description": tool.description, "parameters": parameters(tool)}
    return {"type": "function", "function": function}


def _read(message: Mapping[str, Any], usage: object) -> Reply:
    calls = [(call["id"] or "", call["function"]) for call in message.get("tool_calls") or ()]
    text = message.get("content") or message.get("refusal") or ""
    if not isinstance(text, str):
        raise TypeError("the content is no text")
    return Reply(
        text,
        tuple(read_call(call_id, function["name"], function["arguments"]) for call_id, function in calls),
        completions_usage(usage),
    )
