"""The stage on which every adapter plays: a gateway that says what it is told to, and a server behind the tap."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keval import Sample, Transcript
from keval.execute.attempts import Stopwatch
from keval.execute.models.exchange import ModelExchange
from keval.execute.models.gate import PlayedGate
from keval.execute.trial.reconciliation import check, merge
from keval.plugin import Agent, Asker, Closable, Context, Endpoint, Model, TranscriptBuilder
from keval_command import Session
from keval_gateway import ChatCall, ChatReply, ChatRequest, model_proxy, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import CLOSE, serve
from keval_mcp import Stdio
from tests.agents.bookkeeper import OverA2A, OverHttp
from tests.contexts import Started, started

SERVER = Path(__file__).parent / "servers" / "sums.py"
QUESTION = Sample("s1", "What is 2 + 3?")
INSTRUCTIONS = "Answer like a bookkeeper."
TOOLS = ("add", "divide")

Sending: TypeAlias = Callable[[int, Sequence[bytes]], AsyncIterator[bytes | None]]
Script: TypeAlias = Callable[[ChatRequest], ChatReply | Awaitable[ChatReply]]


@attrs.frozen
class Adapter:
    """An adapter with its options.

    `passes_retry_after` where its SDK tells what the endpoint asked for, and `checks_replies` where it tells a reply
    that is none from one that says nothing. `by_proxy` where only keval's proxy sees its model requests. `tells` is
    what is known of a trial beside tool calls: all, texts beside the answer and what the proxy sees of the model, the
    latter, or the answer alone. `takes_history` where it can be told of earlier messages.
    """

    module: str
    name: str
    options: dict[str, Any] = attrs.field(factory=dict)
    passes_retry_after: bool = True
    checks_replies: bool = True
    by_proxy: bool = False
    tells: Literal["all", "texts", "model", "answer"] = "all"
    takes_history: bool = True

    def build(self, model: Model) -> Agent:
        agent: Agent = getattr(import_module(self.module), self.name)(model=model, **self.options)
        return agent


ADAPTERS = {
    "gadk": Adapter("keval_gadk", "Gadk"),
    "ms": Adapter("keval_ms", "Ms"),
    "openai": Adapter("keval_openai", "OpenAI"),
    "openai responses": Adapter("keval_openai", "OpenAI", {"api": "responses"}),
    "anthropic": Adapter("keval_anthropic", "Anthropic"),
    "claude-code": Adapter("keval_claude_code", "ClaudeCode", passes_retry_after=False),
}
OTHER_WIRES = {
    "gadk chat": Adapter("keval_gadk", "Gadk", {"api": "chat"}),
    "gadk responses": Adapter("keval_gadk", "Gadk", {"api": "responses"}, checks_replies=False),
    "gadk anthropic": Adapter("keval_gadk", "Gadk", {"api": "anthropic"}),
    "ms responses": Adapter("keval_ms", "Ms", {"api": "responses"}),
}
"""Frameworks over the protocols that they do not choose by themselves."""
LOOP = Path(__file__).parent / "command" / "loop.py"
CODER = Path(__file__).parent / "acp" / "coder.py"

OWN_AGENTS = {
    "command": Adapter(
        "keval_command",
        "Command",
        {
            "command": (
                sys.executable,
                "-S",
                str(LOOP),
                "--model={model}",
                "--system={system_prompt_file}",
                "--history={history_file}",
                "--mcp={mcp_config}",
                "{question}",
            ),
            "session": Session(
                (
                    sys.executable,
                    "-S",
                    str(LOOP),
                    "--model={model}",
                    "--mcp={mcp_config}",
                    "--resume={session}",
                    "{question}",
                ),
                "id",
            ),
            "events": "jsonl",
            "answer": "answer",
            "env": {"OPENAI_BASE_URL": "{model_base_url}", "OPENAI_API_KEY": "{model_key}"},
        },
        by_proxy=True,
        tells="model",
    ),
    "acp": Adapter(
        "keval_acp",
        "Acp",
        {
            "command": (sys.executable, "-S", str(CODER), "--model={model}"),
            "env": {"OPENAI_BASE_URL": "{model_base_url}", "OPENAI_API_KEY": "{model_key}"},
            "meta": {"systemPrompt": "{system_prompt}"},
        },
        by_proxy=True,
        tells="texts",
        takes_history=False,
    ),
    "python": Adapter("tests.agents.bookkeeper", "python", {"function": "answer"}, by_proxy=True, tells="model"),
    "python transcript": Adapter("tests.agents.bookkeeper", "python", {"function": "report"}, by_proxy=True),
    "http": Adapter("tests.agents.bookkeeper", "Served", {"front": OverHttp}, tells="answer"),
    "a2a": Adapter("tests.agents.bookkeeper", "Served", {"front": OverA2A}, tells="answer", takes_history=False),
}
"""Agents of the user's, which keval asks and whose model it does not: see tests/agents/bookkeeper.py."""


@asynccontextmanager
async def proxied(agent_model: Model, builder: TranscriptBuilder) -> AsyncIterator[tuple[Model, Mapping[str, str]]]:
    """Yield a model by way of keval's proxy, as an agent gets it whose requests only that can see, and its headers."""
    asker, exchange = Asker("agent", "a"), ModelExchange()
    assert agent_model.endpoint is not None
    there = (agent_model.endpoint.model, *sorted(agent_model.endpoint.urls.values()))
    exchange._gates[there] = PlayedGate()  # which repeats no request
    route = exchange.route(asker, agent_model.endpoint, metered=True)
    async with model_proxy().open([route]) as (endpoint,):
        scope = exchange.request_scope(
            asker,
            builder.refused,
            Stopwatch(),
            builder.relayed,
            metered=builder.metered,
            failed=builder.model_failed,
        )
        with scope as headers:
            yield attrs.evolve(agent_model, endpoint=endpoint), headers


@attrs.frozen
class Outcome:
    """What came of a trial, as the core sees it, what the model was asked, and the live events."""

    transcript: Transcript
    error: Exception | None
    requests: list[ChatRequest]
    events: list[tuple[str, Mapping[str, Any]]]


@attrs.define
class Stage:
    """A gateway and an MCP server behind the tap, up for all tests; one trial at a time plays there.

    `send` gives the body of a response, by the number of its request, another course; see `as_it_is`. `read` is set
    when the first piece of a text is reported.
    """

    base: str
    source: Started
    script: Script = attrs.field(init=False)
    requests: list[ChatRequest] = attrs.field(factory=list)
    events: list[tuple[str, Mapping[str, Any]]] = attrs.field(factory=list)
    send: Sending = attrs.field(init=False)
    read: asyncio.Event = attrs.field(init=False)

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Stage]:
        async with AsyncExitStack() as stack:
            provider = Stdio(command=sys.executable, args=(str(SERVER),), isolation="condition")
            stage = cls("", await stack.enter_async_context(started(provider, "sums")))
            stage.base = await stack.enter_async_context(serve(stage.app(build_app(stage.respond))))
            yield stage

    def respond(self, request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
        self.requests.append(request)
        return self.script(request)

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        self.events.append((kind, data))
        if kind == "text_streamed":
            self.read.set()

    def app(self, gateway: ASGIApp) -> ASGIApp:
        """Return the gateway with each response's whole body, in the pieces that it made, handed to `send`."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            start: list[Message] = []
            pieces: list[bytes] = []

            async def keep(message: Message) -> None:
                if message["type"] == "http.response.start":
                    start.append(message)
                else:
                    pieces.append(message["body"])

            await gateway(scope, receive, keep)
            headers = [pair for pair in start[0]["headers"] if pair[0] != b"content-length"]
            await send({**start[0], "headers": headers})
            async for piece in self.send(len(self.requests), [piece for piece in pieces if piece]):
                if piece is None:
                    scope["state"][CLOSE]()
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})

        return app

    @asynccontextmanager
    async def trial(
        self, adapter: Adapter, script: Script, sample: Sample, *, streams: bool = False, send: Sending | None = None
    ) -> AsyncIterator[tuple[Context, asyncio.Task[Transcript]]]:
        """Begin a trial, as a task."""
        self.script, self.requests, self.events, self.send = script, [], [], send or as_it_is
        self.read = asyncio.Event()
        model = Model("simulated", "m", Endpoint("claude-sonnet-5-5", wire_urls(self.base), "key"))
        async with AsyncExitStack() as stack:
            builder = TranscriptBuilder(emit=self.note)
            headers: Mapping[str, str] = {}
            if adapter.by_proxy:
                model, headers = await stack.enter_async_context(proxied(model, builder))
            agent = adapter.build(model)
            if isinstance(agent, Closable):
                stack.push_async_callback(agent.aclose)
            part = await stack.enter_async_context(self.source.open(sample, "t1"))
            yield (
                context := attrs.evolve(
                    part, instructions=INSTRUCTIONS, streams=streams, builder=builder, model_headers=headers
                ),
                asyncio.create_task(agent.run(sample, context)),
            )

    async def play(self, adapter: Adapter, script: Script, sample: Sample, **rest: Any) -> Outcome:
        async with self.trial(adapter, script, sample, **rest) as (context, running):
            try:
                transcript = merge(await running, context)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return Outcome(merge(context.builder.transcript(), context), error, self.requests, self.events)
            check(transcript, context)
            return Outcome(transcript, None, self.requests, self.events)


async def as_it_is(number: int, pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
    """Send every piece of the body of request `number`, from 1; `None` would cut the connection."""
    for piece in pieces:
        yield piece


def calls(*wanted: tuple[str, dict[str, Any]], text: str = "") -> Script:
    """A reply that calls these tools, under the names that the adapter offers them by."""

    def reply(request: ChatRequest) -> ChatReply:
        offered = {plain(tool.name): tool.name for tool in request.tools}
        return ChatReply(text, tuple(ChatCall(offered[name], arguments) for name, arguments in wanted))

    return reply


def says(text: str) -> Script:
    return lambda request: ChatReply(text)


def plain(name: str) -> str:
    """A tool's own name; many a program puts the server's before it."""
    return re.sub(r"^(mcp_+)?sums_+", "", name)
