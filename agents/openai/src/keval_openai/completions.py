"""A conversation over the Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from keval import Message
from keval.plugin import MAX_OUTPUT_TOKENS, REFUSAL, Context, FinishReason, is_blank, usage_in
from keval_clients import citations, mend_calls, no_reply, read_failure, text_in
from keval_mcp import Call, Media, Reply, Result, Tool
from keval_openai.formats import file_name, parameters, read_call, result_parts
from keval_openai.streamed import whole_completion

if TYPE_CHECKING:
    from keval_clients import Client

_FINISH_REASONS: Mapping[str | None, FinishReason] = {"length": MAX_OUTPUT_TOKENS, "content_filter": REFUSAL}
"""The values of `finish_reason` with which a reply may be cut off."""


@attrs.frozen(eq=False)
class CompletionsChat:
    """A `keval_mcp.loop.Chat`: the messages so far, and what else is in every request."""

    _client: Client
    _context: Context
    _options: dict[str, Any]
    _messages: list[dict[str, Any]]
    _media: frozenset[str] = frozenset()

    @classmethod
    def start(
        cls,
        client: Client,
        context: Context,
        tools: Sequence[Tool],
        options: Mapping[str, Any],
        *,
        media: frozenset[str] = frozenset(),
    ) -> CompletionsChat:
        messages = [{"role": "system", "content": context.instructions}] if context.instructions else []
        messages += [{"role": message.role, "content": message.text} for message in context.history]
        chat = cls(client, context, dict(options), messages, media)
        chat.offer(tools)
        return chat

    def offer(self, tools: Sequence[Tool]) -> None:
        self._options.pop("tools", None)
        if tools:
            self._options["tools"] = [_offer(tool) for tool in tools]

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    async def ask(self) -> Reply:
        answered = await self._post()
        try:
            choice = answered["choices"][0]
            message = choice["message"]
            mend_calls(message, len(self._messages))
            reply = _read(choice, answered)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise no_reply(answered) from error
        # With its calls a message goes back as it came, as some endpoints want to see what the model thought before it
        # called. Of an answer they want to see the text alone.
        self._messages.append(message if reply.calls else {"role": "assistant", "content": reply.text})
        return reply

    def takes(self, media: Media, *, error: bool) -> bool:
        return media.essence in self._media

    def tell(self, results: Sequence[Result]) -> None:
        # A tool message holds text only, so media follow in a message of the user's, in the order they are numbered.
        shown: list[dict[str, Any]] = []
        for result in results:
            lines = []
            for part in result_parts(result):
                if isinstance(part, Media):
                    shown.append(_input(part))
                    lines.append(f"[{part.kind} {len(shown)} of the next message]")
                else:
                    lines.append(part)
            self._messages.append({"role": "tool", "tool_call_id": result.id, "content": "\n".join(lines)})
        if shown:
            self._messages.append({"role": "user", "content": shown})

    async def _post(self) -> dict[str, Any]:
        body, context = {**self._options, "messages": self._messages}, self._context
        asked = (context.model_headers, context.builder.requested)
        if not context.streams:
            return await self._client.post("/chat/completions", body, *asked)
        streaming = {**body, "stream": True, "stream_options": {"include_usage": True}}
        assemble = partial(whole_completion, builder=context.builder)
        return await self._client.stream("/chat/completions", streaming, *asked, assemble)


def _offer(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.alias, "description": tool.description, "parameters": parameters(tool)}
    return {"type": "function", "function": function}


def _input(media: Media) -> dict[str, Any]:
    if media.essence.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": media.data_url}}
    if media.essence.startswith("audio/"):
        form = "wav" if "wav" in media.essence else "mp3"
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
    return {"type": "file", "file": {"filename": file_name(media), "file_data": media.data_url}}


def _read(choice: Mapping[str, Any], answered: Mapping[str, Any]) -> Reply:
    message, finished = choice["message"], choice.get("finish_reason")
    cut = _FINISH_REASONS.get(finished)
    thought, text = _told(message)
    written = message.get("tool_calls") or []
    calls = tuple(_call(call, cut if call is written[-1] else None) for call in written)
    fault = cut.no_answer() if cut and is_blank(text) and not calls else None
    if finished == "error":  # an upstream provider of OpenRouter's failed while it wrote
        fault = read_failure(choice.get("error"), answered)
    said = Message("assistant", text, reasoning=thought, citations=citations(message.get("annotations")))
    truncated = cut is not None and cut.truncates
    return Reply((said,), calls, usage_in("openai-chat", (answered,)), fault=fault, truncated=truncated)


def _told(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the reasoning and the text of a message: vendors have several fields for reasoning, Mistral has chunks."""
    fields = (message.get("reasoning_content"), message.get("reasoning"))
    thought = next((told for told in fields if told and isinstance(told, str)), "")
    content = message.get("content")
    if isinstance(content, list):
        thought += "".join(text_in(chunk["thinking"]) for chunk in content if chunk["type"] == "thinking")
    return thought, text_in(content) or text_in(message.get("refusal"))


def _call(call: Mapping[str, Any], cut: FinishReason | None) -> Call:
    return read_call(call["id"], call["function"]["name"], call["function"]["arguments"], cut)
