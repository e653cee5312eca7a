"""A server of the official Python SDK 2.x that speaks the revision 2026-07-28 alone, at `http://127.0.0.1:PORT/mcp`."""

from __future__ import annotations

import json
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

server = MCPServer("modern", instructions="Adds and counts.")


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(to: int, context: Context[Any, Any]) -> str:
    """Count, with progress."""
    for number in range(to):
        await context.report_progress(number + 1, to)
    return json.dumps({"counted": to, "done": True})


@server.resource("note://first")
def note() -> str:
    """Return the first note."""
    return "A note."


def without_handshake(app: ASGIApp) -> ASGIApp:
    """Refuse `initialize`, as a server does that never had it."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        message: Message = await receive()
        body = json.loads(message.get("body") or b"{}")
        if body.get("method") != "initialize":
            messages = iter([message])

            async def again() -> Message:
                return next(messages, None) or await receive()

            await app(scope, again, send)
            return
        error = {"code": -32601, "message": "Method not found: initialize"}
        told = json.dumps({"jsonrpc": "2.0", "id": body.get("id"), "error": error}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(told)).encode())]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": told})

    return serve


uvicorn.run(without_handshake(server.streamable_http_app()), port=int(sys.argv[1]), log_level="error")
