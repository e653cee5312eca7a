"""A conversation over the Responses API, of which the service keeps nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from keval import Message
from keval.plugin import MAX_OUTPUT_TOKENS, REFUSAL, Context, FinishReason, is_blank, usage_in
from keval_clients import citations, no_reply, read_failure, readable
from keval_mcp import Call, Media, Reply, Result, Tool, text_of
from keval_openai.formats import file_name, parameters, read_call, result_parts
from keval_openai.streamed import whole_response

if TYPE_CHECKING:
    from keval_clients import Client

_FINISH_REASONS: Mapping[str | None, FinishReason] = {"max_output_tokens": MAX_OUTPUT_TOKENS, "content_filter": REFUSAL}
"""The reasons for which a reply may be incomplete."""

_UNEXPLAINED = FinishReason("cut_off", "the endpoint", "it gives no known reason, so look into what it logs")


@attrs.frozen(eq=False)
class ResponsesChat:
    """A `keval_mcp.loop.Chat`: the items so far, and what else is in every request."""

    _client: Client
    _context: Context
    _options: dict[str, Any]
    _items: list[dict[str, Any]]
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
    ) -> ResponsesChat:
        # What a model thought is passed back; one that does not reason refuses that, and is asked without.
        fixed = {**options, "store": False, "include": ["reasoning.encrypted_content"]}
        if context.instructions:
            fixed["instructions"] = context.instructions
        items = [{"role": message.role, "content": message.text} for message in context.history]
        chat = cls(client, context, fixed, items, media)
        chat.offer(tools)
        return chat

    def offer(self, tools: Sequence[Tool]) -> None:
        self._options.pop("tools", None)
        if tools:
            self._options["tools"] = [_offer(tool) for tool in tools]

    def say(self, text: str) -> None:
        self._items.append({"role": "user", "content": text})

    async def ask(self) -> Reply:
        answered = await self._post()
        try:
            reply = _read(answered)
            if reply.fault is None:
                self._items.extend(_passed_back(answered["output"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise no_reply(answered) from error
        return reply

    def takes(self, media: Media, *, error: bool) -> bool:
        return media.essence in self._media

    def tell(self, results: Sequence[Result]) -> None:
        self._items.extend(
            {"type": "function_call_output", "call_id": result.id, "output": _output(result)} for result in results
        )

    async def _post(self) -> dict[str, Any]:
        body, context = {**self._options, "input": self._items}, self._context
        asked = (context.model_headers, context.builder.requested)
        if not context.streams:
            return await self._client.post("/responses", body, *asked)
        assemble = partial(whole_response, builder=context.builder)
        return await self._client.stream("/responses", {**body, "stream": True}, *asked, assemble)


def _offer(tool: Tool) -> dict[str, Any]:
    # Left out, `strict` would be on, and refuse most schemas of MCP servers.
    schema = {"parameters": parameters(tool), "strict": False}
    return {"type": "function", "name": tool.alias, "description": tool.description, **schema}


def _output(result: Result) -> str | list[dict[str, Any]]:
    parts = result_parts(result)
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(parts) else [_input(part) for part in parts]


def _input(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if part.essence.startswith("image/"):
        return {"type": "input_image", "image_url": part.data_url, "detail": "auto"}
    return {"type": "input_file", "filename": file_name(part), "file_data": part.data_url}


def _read(answered: Mapping[str, Any]) -> Reply:
    status, usage = answered.get("status") or "completed", usage_in("openai-responses", (answered,))
    if status not in {"completed", "incomplete"}:
        return Reply(usage=usage, fault=read_failure(answered.get("error") or f"its status is {status}", answered))
    output, cut = answered["output"], None
    if status == "incomplete":
        cut = _FINISH_REASONS.get((answered.get("incomplete_details") or {}).get("reason"), _UNEXPLAINED)
    parts = tuple(_parts(output))
    calls = tuple(
        read_call(item["call_id"], item["name"], item["arguments"], cut if item is output[-1] else None)
        for item in output
        if item["type"] == "function_call"
    )
    fault = cut.no_answer() if cut and is_blank(text_of(parts)) and not calls else None
    return Reply(parts, calls, usage, fault=fault, truncated=cut is not None and cut.truncates)


def _parts(output: Sequence[Mapping[str, Any]]) -> Iterator[Message | Call | Result]:
    for item in output:
        if item["type"] == "message":
            for part in item["content"]:
                text = part["refusal"] if part["type"] == "refusal" else part["text"]
                yield Message("assistant", text, citations=citations(part.get("annotations")))
        elif item["type"] == "reasoning":  # a summary, as OpenAI has it, or that of an open model
            thoughts = item.get("summary") or item.get("content") or ()
            yield Message("assistant", "", reasoning="\n\n".join(part["text"] for part in thoughts))
        elif (served := _served(item)) is not None:
            call, told = served
            error = item.get("error") or (item.get("status") == "failed" and "failed")
            yield call
            yield Result(call.id, (readable(error or told),), bool(error))


def _served(item: Mapping[str, Any]) -> tuple[Call, object] | None:
    """Return the call of a tool that the service ran itself, and what came of it; `None` for any other item."""
    name, known = item["type"].removesuffix("_call"), item.get("id") or ""
    match name:
        case "web_search":
            given = {**(item.get("action") or {})}
            told = given.pop("sources", None)
            return Call(known, name, given), told
        case "file_search":
            return Call(known, name, {"queries": item.get("queries")}), item.get("results")
        case "code_interpreter":
            return Call(known, name, {"code": item.get("code")}), item.get("outputs")
        case "mcp":
            return read_call(known, item["name"], item["arguments"], None), item.get("output")
    return None


def _passed_back(output: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the items of a reply as the next request has them.

    Reasoning that did not come encrypted would be looked for where nothing was kept. Without it the other items must go
    back without their ids too, by which the service knows that it is missing; calls of its own tools need them.
    """
    if all(item["type"] != "reasoning" or item.get("encrypted_content") for item in output):
        return output
    kept = [item for item in output if item["type"] != "reasoning" and _served(item) is None]
    return [{name: value for name, value in item.items() if name != "id"} for item in kept]
