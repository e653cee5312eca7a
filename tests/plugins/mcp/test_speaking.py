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
from tests.plugins.mcp.agent_clients import PREFIX, asked, connected, headers_of, said

JSON, EVENTS = "application/json", "text/event-stream"


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
            return await http.post(context.servers[0].url or "", json=message, headers=headers_of(message))

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
                message = asked("tools/call", name="hang")
                hang = http.stream("POST", reached.url or "", json=message, headers=headers_of(message))
                async with hang as answer:  # the server says nothing, and the client is kept from giving up by that
                    begun = await anext(answer.aiter_lines())
            async with connected(reached.url or "", {"mode": "auto"}) as client:
                heard = json.loads(said(await client.call_tool("work")))
            return [begun[:1], heard, [call.error for call in reached.log.calls]]

    given_up = "the agent gave the call up before the server answered"
    assert [":", ["notifications/cancelled"], [given_up, None]] == asyncio.run(asyncio.wait_for(run(), 30))


def test_log_is_heard_once_by_an_agent_with_two_requests_under_way(
    server: Callable[..., Stdio], sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tap_http, "_SILENT", 0.05)
    level = {PREFIX + "logLevel": "info"}
    hanging, working = asked("tools/call", level, name="hang"), works(**level)

    async def run() -> list[bool]:
        async with (
            started(server("speaking"), "every") as source,
            source.open(sample, "t") as context,
            httpx2.AsyncClient() as http,
        ):
            url = context.servers[0].url or ""
            async with http.stream("POST", url, json=hanging, headers=headers_of(hanging)) as answer:
                lines = answer.aiter_lines()
                await anext(lines)
                work = await http.post(url, json=working, headers=headers_of(working))
                await anext(lines)
                silent = not any([(await anext(lines)).startswith("event") for _ in range(3)])
        return ["notifications/message" in work.text, silent]

    assert [True, True] == asyncio.run(asyncio.wait_for(run(), 30))


def without(message: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a request whose `_meta` lacks a member."""
    meta = {key: value for key, value in message["params"]["_meta"].items() if key != PREFIX + name}
    return {**message, "params": {**message["params"], "_meta": meta}}


LISTED = asked("tools/list")
OTHER = asked("tools/list", {PREFIX + "protocolVersion": "2027-01-01"})


@pytest.mark.parametrize(
    ("message", "headers", "answered"),
    [
        (LISTED, {}, (200, None)),
        (LISTED, {"mcp-method": "TOOLS/LIST"}, (400, -32020)),
        (LISTED, {"mcp-protocol-version": "2025-11-25"}, (400, -32020)),
        (works(), {"mcp-name": "hang"}, (400, -32020)),
        (works(), {"mcp-name": "=?base64?d29yaw==?="}, (200, None)),
        (asked("tools/call", name="work", arguments={"region": "eu"}), {"mcp-param-region": "us"}, (400, -32020)),
        (asked("tools/call", name="work", arguments={"region": "eu"}), {"mcp-param-region": "eu"}, (200, None)),
        (OTHER, {"mcp-protocol-version": "2027-01-01"}, (400, -32022)),
        (without(LISTED, "clientCapabilities"), {}, (400, -32602)),
        (without(LISTED, "protocolVersion"), {}, (400, -32602)),
        (asked("ping"), {}, (404, -32601)),
        (asked("initialize"), {}, (404, -32601)),
        (asked("logging/setLevel", level="info"), {}, (404, -32601)),
    ],
)
def test_request_that_does_not_say_what_it_is_is_refused(
    server: Callable[..., Stdio], sample: Sample, message: Any, headers: dict[str, str], answered: tuple[int, Any]
) -> None:
    async def run() -> httpx2.Response:
        async with (
            started(server("speaking"), "every") as source,
            source.open(sample, "t") as context,
            httpx2.AsyncClient() as http,
        ):
            answer = await http.post(
                context.servers[0].url or "", json=message, headers={**headers_of(message), **headers}
            )
            assert context.servers[0].log is not None
            assert context.servers[0].log.lost is None
            return answer

    answer = asyncio.run(asyncio.wait_for(run(), 30))

    assert answered == (answer.status_code, answer.json().get("error", {}).get("code"))
