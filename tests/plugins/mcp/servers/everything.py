"""A server made with the SDK, with a tool for every kind of answer.

As a script it serves over stdio. Over the network it serves `http`, `sse`, or `sessions`, which is streamable HTTP as
it was before 2026, where a client has to keep a session.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import sys
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

server = MCPServer("everything", instructions="Ask me anything.", version="7.1", title="Everything")


class Sum(BaseModel):
    total: int
    missing: str | None = None


@server.tool(title="Echo", annotations=ToolAnnotations(read_only_hint=True))
def echo(text: Annotated[str, Field(description="What to say")], times: int = 1) -> str:
    """Say it again. Żółć ☂."""
    return text * times


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """Show and tell."""
    return ["a dot", Image(data=base64.b64decode("R0lGODlhAQABAAAAACw="), format="gif")]


@server.tool()
def arguments(value: dict[str, Any]) -> str:
    """Return the argument as JSON."""
    return json.dumps(value, sort_keys=True)


@server.tool()
def told(ctx: Context) -> str:
    """Return what the caller said beside the arguments, in `_meta` and in headers."""
    meta = {key: value for key, value in (ctx.request_context.meta or {}).items() if "modelcontext" not in key}
    request = ctx.request_context.request
    headers = {} if request is None else {k: v for k, v in request.headers.items() if k.startswith("x-keval-")}
    return json.dumps({"meta": meta, "headers": headers})


@server.tool()
def pid() -> str:
    """Return the process id."""
    return str(os.getpid())


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return "never"


@server.tool()
def fail() -> str:
    """Return an error."""
    raise ToolError("the tool has failed")


@server.tool()
def die() -> str:
    """End the process in the middle of the call."""
    sys.stderr.write("dying now\n")
    sys.stderr.flush()
    os._exit(3)


def proxied(app: ASGIApp, sessions: bool) -> ASGIApp:
    """Answer calls of the tool `busy` as an overloaded proxy would, and with `sessions` know the old protocol only."""

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        body = await receive()
        unread = [body]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        if b'"name":"busy"' in body["body"].replace(b" ", b""):
            await PlainTextResponse("come back later", status_code=503)(scope, receive, send)
        elif sessions and b"mcp-method" in dict(scope["headers"]):
            await PlainTextResponse("what is that?", status_code=400)(scope, receive, send)
        else:
            await app(scope, again, send)

    return proxy


def listen(listener: socket.socket, transport: str) -> None:
    """Serve over the network."""
    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(proxied(app, transport == "sessions"), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    server.run("stdio")
