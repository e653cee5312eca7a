"""Agents that speak the revision 2026-07-28, which has no sessions, hear what a server says of their requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from keval import Sample
from keval_mcp import Stdio
from keval_mcp.tap import http as tap_http
from tests.contexts import started
from tests.plugins.mcp.agent_clients import connected, said

PREFIX = "io.modelcontextprotocol/"
META = {
    f"{PREFIX}protocolVersion": "2026-07-28",
    f"{PREFIX}clientCapabilities": {},
    f"{PREFIX}clientInfo": {"name": "c", "version": "1"},
}
JSON, EVENTS = "application/json", "text/event-stream"


def asked(method: str, meta: Any = (), **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": {**META, **dict(meta)}}}


def works(**meta: str) -> dict[str, Any]:
    return asked("tools/call", meta, name="work")


@pytest.mark.parametrize(
    ("message", "answered", "methods"),
    [
        (works(), (200, JSON), [None]),
        (works(progressToken="p"), (200, EVENTS), ["notifications/progress", None]),
        (works(**{PREFIX + "logLevel": "info"}), (200, EVENTS), ["notifications/message", None]),
        (asked("nothing/such"), (404, JSON), [None]),
        (asked("tools/call"), (400, JSON), [None]),
        (asked("subscriptions/listen", notifications=[]), (400, JSON), [None]),
    ],
)
def test_request_is_answered_by_a_stream_if_something_is_said_before(
    server: Callable[..., Stdio], sample: Sample, message: Any, answered: tuple[int, str], methods: list[Any]
) -> None:
    async def run() -> httpx2.Response:
        async with (
            started(server("speaking"), "every") as source,
            source.open(sample, "t") as context,
            httpx2.AsyncClient() as http,
        ):
            return await http.post(context.servers[0].url or "", json=message)

    answer = asyncio.run(asyncio.wait_for(run(), 30))
    lines = answer.text.replace("data: ", "").splitlines()
    messages = [json.loads(line) for line in lines if line.startswith("{")]

    assert answered == (answer.status_code, answer.headers["content-type"])
    assert methods == [each.get("method") for each in messages]
    assert 1 == messages[-1]["id"]
    # The agent's own token, not the one that keval gave the server.
    tokens = [each["params"]["progressToken"] for each in messages if each.get("method") == "notifications/progress"]
    assert ["p"] * methods.count("notifications/progress") == tokens


def test_client_that_hangs_up_gives_its_request_up(
    server: Callable[..., Stdio], sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tap_http, "_SILENT", 0.05)

    async def run() -> list[Any]:
        async with started(server("speaking"), "every") as source, source.open(sample, "t") as context:
            (reached,) = context.servers
            assert reached.log is not None
            async with httpx2.AsyncClient() as http:
                hang = http.stream("POST", reached.url or "", json=asked("tools/call", name="hang"))
                async with hang as answer:  # the server says nothing, and the client is kept from giving up by that
                    begun = await anext(answer.aiter_lines())
            async with connected(reached.url or "", {"mode": "auto"}) as client:
                heard = json.loads(said(await client.call_tool("work")))
            return [begun[:1], heard, [call.error for call in reached.log.calls]]

    given_up = "the agent gave the call up before the server answered"
    assert [":", ["notifications/cancelled"], [given_up, None]] == asyncio.run(asyncio.wait_for(run(), 30))
