"""What the tests of the ADK adapter share: real MCP server processes, and a real run against a scripted model."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import attrs
import pytest

from keval import Sample, Transcript
from keval.plugin import Context, Endpoint, McpServer, Model
from keval.records.models import Wire
from keval_gadk import Gadk
from keval_gateway import ChatReply, ChatRequest, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT

_WEATHER = "tests.agents.gadk.servers.weather"
_TOOLS = ("die", "fail", "get_slow_weather", "get_weather", "hang", "process_id")

Respond = Callable[[ChatRequest], ChatReply | Awaitable[ChatReply]]


@attrs.define
class Gateway:
    """A gateway in a thread of its own, which answers as the test that runs now scripts it."""

    url: str = ""
    script: Respond = attrs.field(init=False)
    requests: list[ChatRequest] = attrs.field(factory=list)
    _started: threading.Event = attrs.field(factory=threading.Event)
    _stop: Callable[[], object] = attrs.field(init=False)

    def respond(self, request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
        self.requests.append(request)
        return self.script(request)

    async def _serve(self) -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stopping.set)
        async with serve(build_app(self.respond, token="key")) as self.url:
            self._started.set()
            await stopping.wait()

    @contextmanager
    def running(self) -> Iterator[Gateway]:
        thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        thread.start()
        self._started.wait()
        try:
            yield self
        finally:
            self._stop()
            thread.join()


@attrs.define
class Driver:
    """Runs the adapter against a model that answers as a test scripts it; `requests` is what ADK really sent."""

    _gateway: Gateway

    @property
    def requests(self) -> list[ChatRequest]:
        return self._gateway.requests

    def agent(self, respond: Respond, wires: Sequence[Wire] = (), **options: Any) -> Gadk:
        self._gateway.script, self._gateway.requests = respond, []
        urls = wire_urls(self._gateway.url)
        reached = {wire: urls[wire] for wire in wires} or urls
        return Gadk(Model("simulated", "m", Endpoint("m", reached, "key")), **options)

    async def run_async(
        self, respond: Respond, context: Context | None = None, sample: Sample | str = "Weather?", **options: Any
    ) -> Transcript:
        agent = self.agent(respond, **options)
        try:
            question = Sample("s1", sample) if isinstance(sample, str) else sample
            return await agent.run(question, context or Context())
        finally:
            await agent.aclose()

    def run(self, respond: Respond, *args: Any, **options: Any) -> Transcript:
        return asyncio.run(self.run_async(respond, *args, **options))


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    with Gateway().running() as gateway:
        yield gateway


@pytest.fixture
def driver(gateway: Gateway) -> Driver:
    return Driver(gateway)


@pytest.fixture
def stdio_server() -> McpServer:
    args = ("-m", "tests.agents.gadk.servers.station")
    return McpServer("weather", "stdio", command=sys.executable, args=args, env=ENVIRONMENT, tools=_TOOLS, timeout=20.0)


@pytest.fixture
def tides_server(stdio_server: McpServer) -> McpServer:
    """Another server over stdio, whose tool `forget_tides` takes the other one away."""
    args = (*stdio_server.args, "tides")
    return attrs.evolve(stdio_server, name="tides", args=args, tools=("forget_tides", "get_tides"))


@attrs.define
class WebServer:
    """A weather server process on a port of its own, which can be ended and started again."""

    transport: Literal["http", "sse"] = "http"
    _process: Listening | None = None

    @property
    def record(self) -> McpServer:
        assert self._process is not None
        path = "mcp" if self.transport == "http" else "sse"
        url = f"http://127.0.0.1:{self._process.port}/{path}"
        return McpServer("weather", self.transport, url=url, tools=_TOOLS, timeout=20.0)

    def start(self) -> None:
        port = self._process.port if self._process else 0
        self._process = Listening.start(_WEATHER, self.transport, port=port)

    def stop(self) -> None:
        assert self._process is not None
        self._process.stop()


@contextmanager
def _serving(server: WebServer) -> Iterator[WebServer]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def http_server() -> Iterator[McpServer]:
    """A streamable-HTTP server that no test ends."""
    with _serving(WebServer()) as server:
        yield server.record


@pytest.fixture
def mortal_server() -> Iterator[WebServer]:
    """A streamable-HTTP server of the test's own."""
    with _serving(WebServer()) as server:
        yield server


@pytest.fixture
def sse_server() -> Iterator[McpServer]:
    with _serving(WebServer("sse")) as server:
        yield server.record
