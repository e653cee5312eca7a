"""A scripted model, real MCP servers and one trial at a time, for the tests of the adapter."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest

from keval import Sample, Transcript
from keval.plugin import Context, Endpoint, McpServer, Model
from keval_gateway import ChatReply, ChatRequest, Respond, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve
from keval_ms import Ms
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT

TOOLBOX, SHELF = "tests.agents.ms.servers.toolbox", "tests.agents.ms.servers.shelf"
TOOLS = ("add", "die", "echo", "fail", "hang", "picture", "where am i")


@attrs.define
class Toolbox:
    """A toolbox process over HTTP, and how to reach it."""

    arguments: tuple[str, ...]
    _process: Listening

    @classmethod
    def start(cls, *arguments: str) -> Toolbox:
        return cls(arguments, Listening.start(TOOLBOX, *arguments))

    def stop(self) -> None:
        self._process.stop()

    async def restart(self) -> None:
        await asyncio.to_thread(self.stop)
        port = self._process.port
        self._process = await asyncio.to_thread(Listening.start, TOOLBOX, *self.arguments, port=port)

    def server(self, **fields: Any) -> McpServer:
        transport = "sse" if self.arguments[0] == "sse" else "http"
        path = "sse" if transport == "sse" else "mcp"
        url = f"http://127.0.0.1:{self._process.port}/{path}"
        return McpServer(**{"name": "toolbox", "transport": transport, "url": url, "tools": TOOLS, **fields})


@attrs.define
class Scene:
    """An adapter in front of a scripted model, and every request the model saw."""

    agent: Ms
    requests: list[ChatRequest]


@attrs.frozen
class Outcome:
    """What came of one trial: its transcript, the error if it failed, and what the model was asked."""

    transcript: Transcript
    error: Exception | None
    requests: list[ChatRequest]


Script: TypeAlias = Respond | Sequence[ChatReply]
"""What the model says: a responder, or its replies in order, whatever it is asked."""

Play: TypeAlias = Callable[..., Outcome]
Staged: TypeAlias = Callable[..., AbstractAsyncContextManager[Scene]]


def _responder(script: Script) -> Respond:
    if callable(script):
        return script
    left = iter(script)
    return lambda request: next(left)


@attrs.define
class Models:
    """One gateway for all tests; each scene has a script and a key of its own."""

    base: str
    scripts: dict[str, tuple[Respond, list[ChatRequest]]] = attrs.field(factory=dict)

    def respond(self, request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
        respond, requests = self.scripts[request.headers["authorization"].removeprefix("Bearer ")]
        requests.append(request)
        return respond(request)

    @asynccontextmanager
    async def stage(self, script: Script, **options: Any) -> AsyncIterator[Scene]:
        key, requests = f"key-{len(self.scripts)}", list[ChatRequest]()
        self.scripts[key] = (_responder(script), requests)
        endpoint = Endpoint("scripted", wire_urls(self.base), key, simulated=True, wants_trial=True)
        agent = Ms(model=Model("simulated", "scripted", endpoint), **options)
        try:
            yield Scene(agent, requests)
        finally:
            await agent.aclose()

    async def play(self, script: Script, sample: Sample, context: Context, **options: Any) -> Outcome:
        async with self.stage(script, **options) as scene:
            try:
                transcript = await scene.agent.run(sample, context)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return Outcome(context.recorder.transcript(), error, scene.requests)
            return Outcome(transcript, None, scene.requests)


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of all tests here, in which the gateway stays up between them."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def models(runner: asyncio.Runner) -> Iterator[Models]:
    models = Models("")
    gateway = serve(build_app(models.respond))
    models.base = runner.run(gateway.__aenter__())
    yield models
    runner.run(gateway.__aexit__(None, None, None))


@pytest.fixture
def staged(models: Models) -> Staged:
    """Put an adapter with these options in front of a model: `async with staged(script, api="chat") as scene`."""
    return models.stage


@pytest.fixture
def play(runner: asyncio.Runner, models: Models) -> Play:
    """Run one trial: `play(script, *servers, api="responses", sample=..., context=...)`."""

    def run(script: Script, *servers: McpServer, sample: Sample | None = None, **rest: Any) -> Outcome:
        context = attrs.evolve(rest.pop("context", Context(trial="t1")), servers=servers)
        return runner.run(models.play(script, sample or Sample("s1", "How are you?"), context, **rest))

    return run


@contextmanager
def _toolbox(*arguments: str) -> Iterator[Toolbox]:
    box = Toolbox.start(*arguments)
    try:
        yield box
    finally:
        box.stop()


@pytest.fixture(scope="session")
def toolbox() -> Iterator[Toolbox]:
    """A well-behaved server over HTTP, shared by the tests that do it no harm."""
    with _toolbox("http") as box:
        yield box


@pytest.fixture
def start_toolbox(journal: Path) -> Iterator[Callable[..., Toolbox]]:
    """Start a server of one's own with these arguments; it writes to `journal`."""
    boxes: list[Toolbox] = []

    def start(*arguments: str) -> Toolbox:
        boxes.append(Toolbox.start(*arguments, "--journal", str(journal)))
        return boxes[-1]

    yield start
    for box in boxes:
        box.stop()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where a server of one's own notes its process id and the calls it runs."""
    return tmp_path / "journal.txt"


@pytest.fixture
def stdio(journal: Path) -> Callable[..., McpServer]:
    """Describe a server over stdio, with these extra arguments and fields; with `sdk`, one made with the SDK."""

    def describe(*arguments: str, transport: str = "stdio", sdk: bool = False, **fields: Any) -> McpServer:
        args = ("-m", TOOLBOX if sdk else SHELF, transport, "--journal", str(journal), *arguments)
        given = {"name": "toolbox", "transport": "stdio", "command": sys.executable, "args": args, "tools": TOOLS}
        env = {**ENVIRONMENT, **fields.pop("env", {})}
        return McpServer(**{**given, "env": env, **fields})

    return describe
