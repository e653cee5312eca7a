"""Servers that refuse `initialize`: one without the handshake is found in whatever way it refuses; others say why."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference
from starlette.types import ASGIApp, Receive, Scope, Send

from keval import Sample
from keval.plugin import PreflightError
from keval_loopback.serving import disconnected, serve
from keval_mcp import Http, Sse, Stdio
from keval_mcp.server import session
from tests.contexts import started

DISCOVERED = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
LISTED = {"resultType": "complete", "tools": [{"name": "order", "inputSchema": {"type": "object"}}]}
MODERN = {"server/discover": {"result": DISCOVERED}, "tools/list": {"result": LISTED}}
UNKNOWN = {"error": {"code": -32601, "message": "no such method"}}
LEGACY: dict[str, Any] = {"server/discover": UNKNOWN, "tools/list": UNKNOWN}


def error(code: int, message: str = "the license has expired", **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}, **more}


CODES = (-32601, -32022, -32602, -32020, -32600, -32603, -32000)

STDIO = """
import json, sys
answers = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in answers and answers[message["method"]] is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answers[message["method"]]}), flush=True)
"""


def listed(provider: Any) -> tuple[str, ...]:
    async def start() -> tuple[str, ...]:
        async with started(provider, "it") as source:
            return source.tool_listings[0].tools

    return asyncio.run(asyncio.wait_for(start(), 8))


def over_http(status: int, refusal: bytes, kind: str, answers: dict[str, Any]) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message = json.loads((await receive())["body"]) if scope["method"] == "POST" else {}
        answer = answers.get(message.get("method", ""))
        told = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **(answer or {})}).encode()
        code, body, type_ = (200, told, "application/json") if answer else (status, refusal, kind)
        await send({"type": "http.response.start", "status": code, "headers": [(b"content-type", type_.encode())]})
        await send({"type": "http.response.body", "body": body})

    return app


def listed_over_http(*server: Any) -> tuple[str, ...]:
    async def start() -> tuple[str, ...]:
        async with serve(over_http(*server)) as base, started(Http(url=f"{base}/mcp"), "it") as source:
            return source.tool_listings[0].tools

    return asyncio.run(asyncio.wait_for(start(), 8))


@pytest.mark.parametrize("refusal", [*map(error, CODES), error(-32600, id=None)], ids=str)
def test_server_without_the_handshake_is_found_over_stdio(refusal: dict[str, Any]) -> None:
    def described(answers: dict[str, Any]) -> Stdio:
        answered = json.dumps({"initialize": refusal, **answers})
        return Stdio(command=sys.executable, args=("-c", STDIO, answered))

    assert ("order",) == listed(described(MODERN))
    with pytest.raises(PreflightError, match=r"'it' did not come up: the license has expired$"):
        listed(described(LEGACY))


TEXT = b"the license has expired"


@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        *((code, json.dumps(error(-32602, jsonrpc="2.0", id=None)).encode(), "json", "") for code in (200, 400, 404)),
        (400, json.dumps({"detail": TEXT.decode()}).encode(), "json", "HTTP 400 Bad Request: "),
        (400, TEXT, "text", "HTTP 400 Bad Request: "),
        (405, TEXT, "text", "HTTP 405 Method Not Allowed: "),
        (403, TEXT, "text", "HTTP 403 Forbidden: "),
    ],
)
def test_server_without_the_handshake_is_found_over_http(status: int, body: bytes, kind: str, told: str) -> None:
    kind = {"json": "application/json", "text": "text/plain"}[kind]

    assert ("order",) == listed_over_http(status, body, kind, MODERN)
    with pytest.raises(PreflightError, match=f"did not come up: .*{told}the license has expired") as raised:
        listed_over_http(status, body, kind, LEGACY)
    assert "no such method" not in str(raised.value)


@pytest.mark.parametrize("discovered", [{"result": {}}, None], ids=str)
def test_server_that_refuses_for_a_reason_of_its_own_is_told_by_it(
    monkeypatch: pytest.MonkeyPatch, discovered: Any
) -> None:
    monkeypatch.setattr(session, "_DISCOVERY_SECONDS", 0.2)
    answered = json.dumps({"initialize": error(-32603), "server/discover": discovered})

    with pytest.raises(PreflightError, match=r"'it' did not come up: the license has expired$"):
        listed(Stdio(command=sys.executable, args=("-c", STDIO, answered)))


def test_agent_is_told_by_a_server_without_sessions_that_a_method_is_unknown_to_it(sample: Sample) -> None:
    told = error(-32601, "no such method", jsonrpc="2.0", id=3)  # keval has asked it twice before
    begins = error(-32601, jsonrpc="2.0", id=1)

    async def ask() -> list[Any]:
        app = over_http(404, json.dumps(told).encode(), "application/json", {**MODERN, "initialize": begins})
        async with (
            serve(app) as base,
            started(Http(url=f"{base}/mcp"), "it") as source,
            source.open(sample, "t") as context,
            Client(context.servers[0].url or "") as client,
        ):
            with pytest.raises(MCPError) as raised:
                await client.complete(PromptReference(name="p"), {"name": "n", "value": "v"})
            assert context.servers[0].log is not None
            return [raised.value.code, raised.value.message, context.servers[0].log.lost]

    assert [-32601, "no such method", None] == asyncio.run(asyncio.wait_for(ask(), 8))


def test_tool_whose_arguments_cannot_be_sent_in_headers_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "number", "x-mcp-header": "Size"}}}
    tools = [*LISTED["tools"], {"name": "pack", "inputSchema": schema}]
    answers = {**MODERN, "initialize": error(-32601), "tools/list": {"result": {**LISTED, "tools": tools}}}

    assert ("order",) == listed(Stdio(command=sys.executable, args=("-c", STDIO, json.dumps(answers))))
    assert "the tool 'pack' is left out" in caplog.text


def test_refusal_without_an_end_is_not_read_to_its_end() -> None:
    sent = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 500, "headers": [(b"content-type", b"text/plain")]})
        gone = asyncio.create_task(disconnected(receive))
        while sent < 2**26 and not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 2**16, "more_body": True})
            sent += 2**16
        await gone

    async def start() -> None:
        async with serve(app) as base, started(Http(url=f"{base}/mcp"), "it"):
            pass

    with pytest.raises(PreflightError, match=r"did not come up: .*HTTP 500 Internal Server Error"):
        asyncio.run(asyncio.wait_for(start(), 20))
    assert sent < 2**26


def test_server_over_sse_that_refuses_to_begin_is_told_at_once() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        status, kind, body = (200, b"text/event-stream", b"event: endpoint\r\ndata: /say\r\n\r\n")
        if scope["method"] == "POST":
            status, kind, body = 403, b"text/plain", TEXT
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": body, "more_body": scope["method"] == "GET"})
        while scope["method"] == "GET" and (await receive())["type"] != "http.disconnect":
            pass

    async def start() -> None:
        async with serve(app) as base, started(Sse(url=f"{base}/sse", startup_timeout=60), "it"):
            pass

    with pytest.raises(PreflightError, match=r"did not come up: .*HTTP 403 Forbidden: the license has expired"):
        asyncio.run(asyncio.wait_for(start(), 8))
