"""Real MCP servers, as processes that end with the test or, where tests only use them, with the session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from keval import Sample
from keval.records.servers import CallLog
from keval_mcp import Http, Sse, Stdio
from tests.contexts import Started, started
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT

BARE = Path(__file__).parent / "servers" / "bare.py"
SHARED = {"isolation": "condition"}
"""Trials share a server unless a test is about what else there is."""


@pytest.fixture
def sample() -> Sample:
    return Sample("one", "What is it?", facts={"mood": "żywy", "preferences": {"dislikes_cold": True}})


@pytest.fixture
def server() -> Callable[..., Stdio]:
    """Describe a server of the `servers` folder: its name, its arguments and the provider's options."""

    def describe(name: str, *args: str, **options: Any) -> Stdio:
        module = f"tests.plugins.mcp.servers.{name}"
        return Stdio(command="python", args=("-m", module, *args), env=ENVIRONMENT, **{**SHARED, **options})

    return describe


@pytest.fixture
def everything(server: Callable[..., Stdio]) -> Callable[..., Stdio]:
    """Describe the server that can do everything, as a process of the test's own; it is slow to come up."""

    def describe(**options: Any) -> Stdio:
        return server("everything", **options)

    return describe


@pytest.fixture
def bare() -> Callable[..., Stdio]:
    """Describe the server that goes wrong on request, as a process of the test's own."""

    def describe(**options: Any) -> Stdio:
        return Stdio(command="python", args=(str(BARE),), **{**SHARED, **options})

    return describe


@attrs.define
class Everything:
    """The server that can do everything, listening on loopback."""

    transport: str
    _process: Listening

    @classmethod
    def start(cls, transport: str, port: int = 0) -> Everything:
        return cls(transport, Listening.start("tests.plugins.mcp.servers.everything", transport, port=port))

    @property
    def port(self) -> int:
        return self._process.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'sse' if self.transport == 'sse' else 'mcp'}"

    def stop(self) -> None:
        self._process.stop()


@pytest.fixture
def listening() -> Iterator[Callable[..., Everything]]:
    """Start a listening server over `http`, `sessions` or `sse`, on a free port or a given one."""
    begun: list[Everything] = []

    def start(transport: str, port: int = 0) -> Everything:
        begun.append(Everything.start(transport, port))
        return begun[-1]

    yield start
    for one in begun:
        one.stop()


@pytest.fixture(scope="session")
def lasting_http() -> Iterator[str]:
    """The URL of a streamable HTTP server for tests that do it no harm."""
    one = Everything.start("http")
    yield one.url
    one.stop()


@pytest.fixture(scope="session")
def lasting_sse() -> Iterator[str]:
    """The URL of an SSE server for tests that do it no harm."""
    one = Everything.start("sse")
    yield one.url
    one.stop()


@pytest.fixture(params=["http", "sse"])
def network(request: pytest.FixtureRequest) -> Callable[..., Http | Sse]:
    """Describe a lasting server, over each of the network transports."""
    provider = Http if request.param == "http" else Sse
    url = request.getfixturevalue(f"lasting_{request.param}")

    def describe(**options: Any) -> Http | Sse:
        return provider(url=url, **{**SHARED, **options})

    return describe


@pytest.fixture
def lasting(lasting_http: str) -> Callable[..., Http]:
    """Describe a server that is cheap to connect to."""

    def describe(**options: Any) -> Http:
        return Http(url=lasting_http, **{**SHARED, **options})

    return describe


@pytest.fixture
def text() -> Callable[[CallToolResult], str]:
    """Read the text of a result."""
    return _text


def _text(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


@attrs.frozen
class Tapped:
    """One attempt at a trial, with a client where the agent would be."""

    client: Client
    log: CallLog

    async def call(self, name: str, **arguments: Any) -> str:
        return _text(await self.client.call_tool(name, arguments))


@pytest.fixture
def attempt(sample: Sample) -> Callable[..., AbstractAsyncContextManager[Tapped]]:
    """Open an attempt at a trial and connect a client to it."""

    @asynccontextmanager
    async def connect(source: Started, trial: str = "t", mode: str = "auto", **changes: Any) -> AsyncIterator[Tapped]:
        async with source.open(sample, trial, **changes) as context:
            (server,) = context.servers
            assert server.url is not None
            assert server.log is not None
            # Loading the certificates that loopback does not need would take longer than the rest of the attempt.
            async with (
                httpx2.AsyncClient(verify=False, timeout=60) as http,
                Client(streamable_http_client(server.url, http_client=http), mode=mode) as client,
            ):
                yield Tapped(client, server.log)

    return connect


class Doorbell:
    """A loopback port where a server process rings, and stays connected for as long as it lives if it wants to."""

    def __init__(self) -> None:
        self.said = b""
        self.rung = asyncio.Event()
        self.hung_up = asyncio.Event()

    async def __aenter__(self) -> Doorbell:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.hung_up.wait()
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.said = (await reader.readline()).strip()
        self.rung.set()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        self.hung_up.set()


@pytest.fixture
def doorbell() -> Callable[[], Doorbell]:
    return Doorbell


@pytest.fixture
def outcomes(
    attempt: Callable[..., AbstractAsyncContextManager[Tapped]],
) -> Callable[..., list[tuple[list[str], CallLog]]]:
    """Run trials one after another, each with its calls, and give the texts and the log of each."""

    async def run(
        provider: Any, trials: Sequence[Sequence[tuple[str, dict[str, Any]]]]
    ) -> list[tuple[list[str], CallLog]]:
        found = []
        async with started(provider, "every") as source:
            for number, calls in enumerate(trials):
                async with attempt(source, f"t{number}") as tapped:
                    found.append(([await tapped.call(name, **arguments) for name, arguments in calls], tapped.log))
        return found

    return lambda provider, *trials: asyncio.run(run(provider, trials))
