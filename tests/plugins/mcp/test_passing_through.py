"""What passes through the tap is what the server said, whatever the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from httpx2 import AsyncClient
from mcp import Client, MCPError

from keval import Sample
from keval_mcp import Http, Sse, Stdio
from tests.contexts import started
from tests.plugins.mcp.servers.plain import DATA, SCHEMA

SAMPLE = Sample("s1", "How is the weather?")

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"text": "Żółć ☂", "times": 2}),
    ("add", {"a": 1, "b": 2}),
    ("picture", {}),
    ("arguments", {"value": {"deep": [None, {"empty": None}], "number": 1.5}}),
    ("fail", {}),
    ("echo", {}),
    ("no_such_tool", {"x": 1}),
]


async def _everything_said(client: Client) -> dict[str, Any]:
    return {
        "info": client.server_info,
        "instructions": client.instructions,
        "tools": [tool.model_dump() for tool in (await client.list_tools()).tools],
        "results": [(await client.call_tool(name, arguments)).model_dump() for name, arguments in CALLS],
    }


async def _said_through_the_tap(provider: Any, attempt: Callable[..., Any], mode: str = "auto") -> dict[str, Any]:
    async with started(provider, "every") as source, attempt(source, mode=mode) as tapped:
        return await _everything_said(tapped.client)


async def _said_directly(url: str) -> dict[str, Any]:
    async with Client(url, mode="legacy") as client:
        return await _everything_said(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_agent_sees_through_the_tap_what_it_sees_without(
    lasting_http: str, attempt: Callable[..., Any], mode: str
) -> None:
    # The tap speaks the revisions with a handshake wherever the server has them.
    direct = asyncio.run(_said_directly(lasting_http))
    tapped = asyncio.run(_said_through_the_tap(Http(url=lasting_http), attempt, mode))

    assert direct["info"] == tapped["info"]
    assert direct["instructions"] == tapped["instructions"]
    assert direct["tools"] == tapped["tools"]
    assert direct["results"] == tapped["results"]


@pytest.mark.slow
def test_every_transport_passes_the_same(
    everything: Callable[..., Stdio], lasting_http: str, lasting_sse: str, attempt: Callable[..., Any]
) -> None:
    providers = (everything(), Http(url=lasting_http), Sse(url=lasting_sse))

    stdio, http, sse = (asyncio.run(_said_through_the_tap(provider, attempt)) for provider in providers)

    assert stdio == http
    assert stdio == sse


def test_all_pages_of_tools_are_listed_and_data_and_refusals_pass(
    server: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    async def run() -> tuple[Any, ...]:
        async with started(server("plain"), "plain") as source, attempt(source) as tapped:
            names = [tool.name for tool in (await tapped.client.list_tools()).tools]
            data = await tapped.client.call_tool("data", {})
            with pytest.raises(MCPError) as raised:
                await tapped.client.call_tool("refuse", {})
            return source.tool_listings[0].tools, names, data.structured_content, raised.value, tapped.log

    offered, names, data, refusal, log = asyncio.run(run())

    assert ("refuse", "data") == offered == tuple(names)
    assert {"temperature": -3, "wind": None} == data
    assert (-32602, "there is no such city", {"city": "Atlantis"}) == (refusal.code, refusal.message, refusal.data)
    expected = [("data", '{"temperature": -3, "wind": null}', None), ("refuse", None, "there is no such city")]
    assert expected == [(call.name, call.result, call.error) for call in log.calls]
    assert log.lost is None


@pytest.mark.parametrize(("shown", "expected"), [(True, "Ask me anything."), (False, None)])
def test_the_servers_instructions_are_told_or_hidden_everywhere(
    lasting_http: str, attempt: Callable[..., Any], shown: bool, expected: str | None
) -> None:
    async def run() -> list[str | None]:
        async with (
            started(Http(url=lasting_http, server_instructions=shown), "every") as source,
            source.open(SAMPLE, "t1") as context,
            attempt(source) as tapped,
        ):
            return [source.tool_listings[0].instructions, context.servers[0].instructions, tapped.client.instructions]

    assert [expected] * 3 == asyncio.run(run())


def test_nothing_of_a_definition_is_lost(server: Callable[..., Stdio]) -> None:
    asking = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    async def run() -> tuple[Any, ...]:
        async with started(server("plain"), "plain") as source, source.open(SAMPLE, "t1") as context:
            (reached,) = context.servers
            assert reached.channel is not None
            async with AsyncClient() as client:
                answer = await client.post(str(reached.url), json=asking, headers={"accept": "application/json"})
            return (
                answer.json()["result"]["tools"],
                await reached.channel.list_tools(),
                source.tool_listings[0].definitions,
            )

    refuse = {"name": "refuse", "inputSchema": SCHEMA}
    assert [[refuse, DATA]] * 3 == [[*tools] for tools in asyncio.run(run())]


def test_answer_that_is_no_tool_result_is_an_error_to_the_agent(
    server: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    problem = "server 'plain' answered 'nonsense' with something that is no tool result"

    async def run() -> Any:
        async with started(server("plain"), "plain") as source, attempt(source) as tapped:
            with pytest.raises(MCPError, match=problem):
                await tapped.client.call_tool("nonsense", {})
            return tapped.log

    log = asyncio.run(run())

    assert [True] == [call.error.startswith(problem) for call in log.calls]
    assert log.lost is None


def test_ping_is_answered(lasting: Callable[..., Http], attempt: Callable[..., Any]) -> None:
    async def ping() -> dict[str, Any]:
        async with started(lasting(), "every") as source, attempt(source, mode="legacy") as tapped:
            answer: dict[str, Any] = (await tapped.client.session.send_ping()).model_dump(exclude_none=True)
            return answer

    assert {} == asyncio.run(ping())
