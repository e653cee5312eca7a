"""With `tap: false` the agent gets what it needs to connect by itself, and nobody watches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from keval import Sample
from keval.plugin import McpServer
from keval_mcp import Http, Sse, Stdio
from tests.contexts import started

Told = tuple[McpServer, dict[str, Any]]


def test_stdio_server_is_described_to_the_agent(
    bare: Callable[..., Stdio], sample: Sample, tmp_path: Path, text: Callable[[CallToolResult], str]
) -> None:
    provider = bare(tap=False, env={"COLOUR": "red"}, cwd=tmp_path, timeout=7)

    async def run() -> Told:
        async with (
            started(provider, "every", facts=lambda sample: sample.facts) as source,
            source.open(sample, "t1") as context,
        ):
            (server,) = context.servers
            process = StdioServerParameters(
                command=server.command or "", args=list(server.args), env=dict(server.env), cwd=server.cwd
            )
            async with Client(process) as client:
                return server, json.loads(text(await client.call_tool("told", {})))

    server, told = asyncio.run(run())

    assert ("stdio", None, str(tmp_path), 7) == (server.transport, server.log, server.cwd, server.timeout)
    assert ("echo", "pid") == server.tools[:2]
    attempt = server.env["KEVAL_ATTEMPT"]
    assert attempt
    environment = {
        "KEVAL_TRIAL": "t1",
        "KEVAL_ATTEMPT": attempt,
        "KEVAL_MOOD": "żywy",
        "KEVAL_PREFERENCES": '{"dislikes_cold": true}',
    }
    assert {"COLOUR": "red", **environment} == server.env
    assert environment == told["environment"]


def test_network_server_is_described_to_the_agent(
    network: Callable[..., Http | Sse], sample: Sample, text: Callable[[CallToolResult], str]
) -> None:
    provider = network(tap=False, headers={"authorization": "Bearer x"})

    async def run() -> Told:
        async with (
            started(provider, "every", facts=lambda sample: sample.facts) as source,
            source.open(sample, "t 1☂") as context,
            httpx2.AsyncClient(headers=context.servers[0].headers) as http,
        ):
            (server,) = context.servers
            if server.transport == "sse":
                connection = sse_client(provider.url, headers=dict(server.headers))
            else:
                connection = streamable_http_client(provider.url, http_client=http)
            async with Client(connection) as client:
                return server, json.loads(text(await client.call_tool("told", {})))

    server, told = asyncio.run(run())

    assert (provider.url, None, "Bearer x") == (server.url, server.log, server.headers["authorization"])
    headers = {name: unquote(value) for name, value in told["headers"].items()}
    assert headers.pop("x-keval-attempt")
    expected = {"x-keval-trial": "t 1☂", "x-keval-mood": "żywy", "x-keval-preferences": '{"dislikes_cold": true}'}
    assert expected == headers


def test_offer_is_the_same_with_and_without_the_tap(lasting: Callable[..., Http]) -> None:
    async def tool_listings(provider: Http) -> Any:
        async with started(provider, "every") as source:
            return [attrs.evolve(tool_listing, sharing=None) for tool_listing in source.tool_listings]

    tapped, direct = asyncio.run(tool_listings(lasting())), asyncio.run(tool_listings(lasting(tap=False)))

    assert tapped == direct
    assert ["every"] == [tool_listing.server for tool_listing in direct]
