"""Clients that are no agents of a run use a server at one address."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest
from mcp import Client, MCPError

from keval import Sample
from keval.errors import ServerLostError
from keval.plugin import McpServer
from keval_loopback.loopback import listen
from keval_loopback.serving import serve
from keval_mcp import Http, Stdio
from keval_mcp.passage.passage import Passage
from keval_mcp.tap.agent_session import Talk
from keval_mcp.tap.http import ClientSessions
from tests.contexts import started
from tests.plugins.mcp.agent_clients import asked, headers_of

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}


def test_a_client_that_listens_while_it_ends_its_session_ends_its_visit_once(
    lasting: Callable[..., Http], sample: Sample
) -> None:
    visits: list[str] = []

    async def run() -> list[Any]:
        async with started(lasting(), "every") as source:

            @asynccontextmanager
            async def visit(capabilities: Any) -> AsyncIterator[McpServer]:
                async with source.open(sample, "t") as context:
                    visits.append("begun")
                    yield context.servers[0]
                visits.append("ended")

            transport = httpx2.ASGITransport(ClientSessions(80, visit))
            base = {"accept": "application/json, text/event-stream", "host": "127.0.0.1:80"}
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=base) as http:
                hello = await http.post("/mcp", json=HELLO)
                own = {"mcp-session-id": hello.headers["mcp-session-id"]}
                listening = asyncio.create_task(http.get("/mcp", headers=own))
                await asyncio.sleep(0.05)
                ended = await http.delete("/mcp", headers=own)
                heard = await listening
                gone = await http.post("/mcp", json=HELLO, headers=own)
                return [hello.status_code, heard.status_code, ended.status_code, gone.status_code]

    assert [200, 200, 200, 404] == asyncio.run(run())
    assert ["begun", "ended"] == visits


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
DISCOVER = asked("server/discover")


@pytest.mark.parametrize("name", ["plain", "modern"])
def test_clients_with_and_without_sessions_do_each_other_no_harm(
    server: Callable[..., Stdio], sample: Sample, name: str
) -> None:
    visits: list[str] = []

    async def run() -> list[Any]:
        listener = listen()
        async with started(server(name), name) as source, httpx2.AsyncClient() as http:

            @asynccontextmanager
            async def visit(capabilities: Any) -> AsyncIterator[McpServer]:
                visits.append("tried")
                if len(visits) == 1:
                    raise ServerLostError("it is not up yet")
                async with source.open(sample, "t") as context:
                    visits.append("begun")
                    yield context.servers[0]
                visits.append("ended")

            sessions = ClientSessions(listener.getsockname()[1], visit)
            async with serve(sessions, listener=listener) as address:
                url = f"{address}/mcp"

                async def listed() -> list[str]:
                    async with Client(url) as client:
                        return [tool.name for tool in (await client.list_tools()).tools]

                async def status(message: Any, **headers: str) -> int:
                    known = headers_of(message) if message is DISCOVER else {}
                    return (await http.post(url, json=message, headers={**known, **headers})).status_code

                failed = await http.post(url, json=PING)
                pings = await asyncio.gather(*(status(PING) for _ in range(3)))
                hello = await http.post(url, json=HELLO)
                own = {"mcp-session-id": hello.headers.get("mcp-session-id", "")}
                first = [await listed(), *await asyncio.gather(listed(), listed())]
                later = [await status(DISCOVER), await status(PING), await status(PING, **own)]
                ended = (await http.delete(url, headers=own)).status_code
                last = [await status(PING, **own), await status(PING), await listed()]
                await sessions.close()
            return [failed.status_code, failed.text, pings, "error" in hello.json(), first, later, ended, last]

    tools = ["order"] if name == "modern" else ["refuse", "data"]
    # Without a session, every request says in which revision it is.
    ping = 400 if name == "modern" else 200
    expected = [502, "it is not up yet", [ping] * 3, False, [tools] * 3]
    assert [*expected, [200, ping, 200], 200, [404, ping, tools]] == asyncio.run(run())
    # One server for all that have no session, and one for each `initialize`.
    assert (2 if name == "modern" else 6) == visits.count("begun")
    assert visits.count("begun") == visits.count("ended")


def test_a_session_in_which_the_server_asked_too_late_is_forgotten() -> None:
    async def run() -> weakref.ref[Talk]:
        talk = Talk(cast(Passage, SimpleNamespace(agents=[])), lambda message, about: None)
        await talk.close()
        with pytest.raises(MCPError, match="has ended its session"):
            await talk.ask("ping", {})
        return weakref.ref(talk)

    talk = asyncio.run(run())
    gc.collect()

    assert talk() is None
