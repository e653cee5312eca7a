"""A small agent as a user may have one, a loop of model and tools: as a function and over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from mcp import Client
from openai import AsyncOpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keval import Sample, Transcript, Usage
from keval.plugin import (
    Context,
    Model,
    ModelAccess,
    TranscriptBuilder,
)
from keval_http import Http
from keval_loopback.serving import serve
from keval_python import Python

Chat: TypeAlias = list[dict[str, Any]]


async def answer(sample: Sample, context: Context) -> str:
    """A target that tells only what it answers."""
    assert context.model is not None
    urls = [server.url or "" for server in context.servers]
    chat: Chat = [{"role": "system", "content": context.instructions}]
    return await reply(context.model, urls, chat, sample.question, TranscriptBuilder())


async def report(sample: Sample, context: Context) -> Transcript:
    """A target that reports all that it does, as an adapter does."""
    assert context.model is not None
    urls = [server.url or "" for server in context.servers]
    chat: Chat = [{"role": "system", "content": context.instructions}]
    chat += [{"role": message.role, "content": message.text} for message in context.history]
    for question in sample.asked:
        with context.builder.turn(question):
            await reply(context.model, urls, chat, question, context.builder)
    return context.builder.transcript()


async def reply(model: ModelAccess, urls: Sequence[str], chat: Chat, question: str, builder: TranscriptBuilder) -> str:
    """Answer a question; `chat` is what was said, and grows."""
    chat.append({"role": "user", "content": question})
    async with (
        AsyncOpenAI(base_url=model.base_url, api_key=model.api_key, max_retries=0) as api,
        tools_of(urls) as (tools, owners),
    ):
        while True:
            builder.offered(owners)
            completion = await api.chat.completions.create(model=model.name, messages=chat, **tools)  # type: ignore[arg-type]
            choice, usage = completion.choices[0], completion.usage
            builder.model_called(Usage(usage.prompt_tokens, usage.completion_tokens) if usage else None)
            text = choice.message.content or ""
            builder.said(text, truncated=choice.finish_reason == "length")
            chat.append(choice.message.model_dump(exclude_none=True))
            for call in choice.message.tool_calls or ():
                assert call.type == "function"
                arguments = json.loads(call.function.arguments)
                builder.called(call.function.name, arguments, call.id)
                result = await owners[call.function.name].call_tool(call.function.name, arguments)
                told = "\n".join(part.text for part in result.content if part.type == "text")
                builder.returned(None if result.is_error else told, error=told if result.is_error else None, id=call.id)
                chat.append({"role": "tool", "tool_call_id": call.id, "content": told})
            if not choice.message.tool_calls:
                return text


@asynccontextmanager
async def tools_of(urls: Sequence[str]) -> AsyncIterator[tuple[dict[str, Any], Mapping[str, Client]]]:
    """The tools of MCP servers as an option of OpenAI's API, and which server has which."""
    async with AsyncExitStack() as stack:
        tools: list[Any] = []
        owners: dict[str, Client] = {}
        for url in urls:
            client = await stack.enter_async_context(Client(url))
            for tool in (await client.list_tools()).tools:
                function = {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}
                tools.append({"type": "function", "function": function})
                owners[tool.name] = client
        yield {"tools": tools} if tools else {}, owners


@attrs.frozen
class OverHttp:
    """The agent behind an endpoint, which keeps a chat for each session; `model` is its own business."""

    model: ModelAccess
    chats: dict[str, Chat] = attrs.field(factory=dict)

    def routes(self, base: str) -> list[BaseRoute]:
        return [Route("/ask", self.ask, methods=["POST"])]

    async def ask(self, request: Request) -> Response:
        body = await request.json()
        begun: Chat = [{"role": "system", "content": body["instructions"]}, *body["history"]]
        chat = self.chats.setdefault(body["session"], begun)
        urls = [server["url"] for server in body["servers"]]
        text = await reply(self.model, urls, chat, body["question"], TranscriptBuilder())
        return JSONResponse({"data": {"text": text}})

    @staticmethod
    def agent(base: str) -> Http:
        names = ("question", "instructions", "history", "session", "servers")
        return Http(url=f"{base}/ask", body={name: f"{{{{ {name} }}}}" for name in names}, answer="data.text")


@attrs.frozen
class Served:
    """An agent that keval reaches over the network, which is up while a trial runs."""

    model: Model

    async def run(self, sample: Sample, context: Context) -> Transcript:
        app = Starlette()
        async with serve(app) as base:
            app.router.routes += OverHttp(self.model.access("openai-chat", {})).routes(base)
            agent = OverHttp.agent(base)
            try:
                return await agent.run(sample, context)
            finally:
                await agent.aclose()


def python(model: Model, function: str) -> Python:
    return Python(target=Path(f"{__file__}:{function}"), model=model)
