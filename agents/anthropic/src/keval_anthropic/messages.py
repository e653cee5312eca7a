"""A conversation over the Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from keval import Message
from keval.plugin import CONTEXT_WINDOW, MAX_OUTPUT_TOKENS, REFUSAL, Context, FinishReason, is_blank, usage_in
from keval_anthropic.streamed import whole_message
from keval_clients import citations, no_reply, quoted, readable
from keval_mcp import Call, Media, Reply, Result, Tool, text_of

if TYPE_CHECKING:
    from keval_clients import Client

_FINISH_REASONS: Mapping[str | None, FinishReason] = {
    "max_tokens": MAX_OUTPUT_TOKENS,
    "model_context_window_exceeded": CONTEXT_WINDOW,
    "refusal": REFUSAL,
}
"""The values of `stop_reason` with which a reply may be cut off."""

_MEDIA = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp", "application/pdf"})
"""The types of images and documents that the API takes in the result of a tool."""

_SILENT = "the tool failed and said nothing"


@attrs.frozen(eq=False)
class MessagesChat:
    """A `keval_mcp.loop.Chat`: the messages so far, and what else is in every request."""

    _client: Client
    _context: Context
    _options: dict[str, Any]
    _messages: list[dict[str, Any]]
    _served: set[str] = attrs.field(factory=set)
    """Calls of tools that Anthropic runs itself, whose results may come in a later reply."""

    @classmethod
    def start(cls, client: Client, context: Context, tools: Sequence[Tool], options: Mapping[str, Any]) -> MessagesChat:
        fixed = dict(options)
        if context.instructions:
            fixed["system"] = context.instructions
        messages = [{"role": message.role, "content": message.text} for message in context.history]
        chat = cls(client, context, fixed, messages)
        chat.offer(tools)
        return chat

    def offer(self, tools: Sequence[Tool]) -> None:
        self._options.pop("tools", None)
        if tools:
            self._options["tools"] = [_offer(tool) for tool in tools]

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    async def ask(self) -> Reply:
        answered = await self._sent({**self._options, "messages": self._messages})
        try:
            reply = _read(answered, self._served)
            content = [block for block in answered["content"] if not _is_blank(block)]
        except (AttributeError, KeyError, TypeError) as error:
            raise no_reply(answered) from error
        if content:  # the API takes back neither a message nor a text without content, though it may give one
            self._messages.append({"role": "assistant", "content": content})
        return reply

    async def _sent(self, body: Mapping[str, Any]) -> dict[str, Any]:
        context = self._context
        asked = (context.model_headers, context.builder.requested)
        if not context.streams:
            return await self._client.post("/v1/messages", body, *asked)
        assemble = partial(whole_message, builder=context.builder)
        return await self._client.stream("/v1/messages", {**body, "stream": True}, *asked, assemble)

    def takes(self, media: Media, *, error: bool) -> bool:
        return media.essence in _MEDIA and not error  # the API wants an error to be text

    def tell(self, results: Sequence[Result]) -> None:
        self._messages.append({"role": "user", "content": [_tell(result) for result in results]})


def _offer(tool: Tool) -> dict[str, Any]:
    # The API wants the type, which a server may leave out.
    schema = {"type": "object", **tool.input_schema}
    return {"name": tool.alias, "description": tool.description, "input_schema": schema}


def _tell(result: Result) -> dict[str, Any]:
    # The API wants a text for an error; for anything else it takes no empty one.
    content: str | list[dict[str, Any]] = result.text or (_SILENT if result.is_error else "")
    if any(isinstance(part, Media) for part in result.parts):
        content = [_block(part) for part in result.parts if part]
    told = {"content": content} if content else {}
    return {"type": "tool_result", "tool_use_id": result.id, "is_error": result.is_error, **told}


def _block(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.essence, "data": part.data}
    return {"type": "image" if part.essence.startswith("image/") else "document", "source": source}


def _read(answered: Mapping[str, Any], served: set[str]) -> Reply:
    content, stopped = answered["content"], answered.get("stop_reason")
    cut = _FINISH_REASONS.get(stopped)
    parts = tuple(_parts(content, served))
    calls = tuple(
        _call(block, cut if block is content[-1] else None) for block in content if block["type"] == "tool_use"
    )
    return Reply(
        parts,
        calls,
        usage_in("anthropic", (answered,)),
        paused=stopped == "pause_turn",
        fault=cut.no_answer() if cut and is_blank(text_of(parts)) and not calls else None,
        truncated=cut is not None and cut.truncates,
    )


def _parts(content: Sequence[Mapping[str, Any]], served: set[str]) -> Iterator[Message | Call | Result]:
    for block in content:
        match block["type"]:
            case "text":
                yield Message("assistant", block["text"], citations=citations(block.get("citations")))
            case "thinking":
                yield Message("assistant", "", reasoning=block["thinking"])
            case "server_tool_use" | "mcp_tool_use":
                served.add(block["id"])
                yield _call(block, None)
            case str(kind) if kind.endswith("_tool_result") and block["tool_use_id"] in served:
                served.remove(block["tool_use_id"])
                told = block["content"]
                failed = block.get("is_error") or (isinstance(told, dict) and "error_code" in told)
                yield Result(block["tool_use_id"], (readable(told),), bool(failed))


def _call(block: Mapping[str, Any], cut: FinishReason | None) -> Call:
    given, problem = block["input"], cut.problem if cut else ""
    if not isinstance(given, dict):
        given, problem = {}, problem or f"the arguments are not a JSON object: {quoted(given)}"
    return Call(block["id"], block["name"], given, problem)


def _is_blank(block: Mapping[str, Any]) -> bool:
    return block["type"] == "text" and not block["text"].strip()
