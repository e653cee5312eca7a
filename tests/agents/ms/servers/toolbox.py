"""An MCP server made with the SDK for the adapter's tests, that can misbehave on request.

Every call it runs is noted in the journal, one line each, and told to the beacon, for a test that waits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["http", "sse"])
parser.add_argument("--journal", type=Path)
parser.add_argument("--beacon", type=int, help="a UDP port")
parser.add_argument("--legacy", action="store_true", help="speak only the protocol with sessions")
parser.add_argument("--forget", action="store_true", help="run a call, then answer that the session is gone")
parser.add_argument("--broken", help="a method to answer with HTTP 503")
parser.add_argument("--guarded", action="store_true", help="refuse requests without x-keval-trial")
options = argparse.Namespace()

server = MCPServer("toolbox", log_level="CRITICAL")


def note(line: str) -> None:
    if options.journal:
        with options.journal.open("a", encoding="utf-8") as journal:
            journal.write(line + "\n")
    if options.beacon:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beacon:
            beacon.sendto(line.encode(), ("127.0.0.1", options.beacon))


@server.tool()
def echo(text: str, options: str = "") -> str:
    """Say it back. The framework keeps `options` to itself."""
    note(f"echo {text}")
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    note(f"add {a} {b}")
    return a + b


@server.tool()
def fail(text: str) -> str:
    """Answer with an error."""
    note("fail")
    raise ToolError(text)


@server.tool()
def die() -> str:
    """End the process in the middle of a call."""
    note("die")
    os._exit(3)


@server.tool()
async def hang() -> str:
    """Never answer."""
    note("hang")
    await asyncio.Event().wait()
    return ""


@server.tool()
def picture() -> Image:
    """Return something that is not text."""
    return Image(data=b"\x89PNG", format="png")


@server.tool(name="where am i")
def where() -> str:
    """Tell the working directory and the trial, under a name that the framework must change."""
    return f"{Path.cwd()} {os.environ.get('KEVAL_TRIAL')}"


def misbehaving(app: ASGIApp) -> ASGIApp:
    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        first = await receive()
        body = first.get("body", b"")

        async def replay(queue: list[Message] = [first]) -> Message:  # noqa: B006 - one queue per request
            return queue.pop() if queue else await receive()

        async def discard(message: Message) -> None:
            pass

        if options.guarded and b"x-keval-trial" not in dict(scope["headers"]):
            await answer(send, 401)
        elif options.legacy and b'"server/discover"' in body:
            await answer(send, 400)
        elif options.broken and f'"{options.broken}"'.encode() in body:
            await answer(send, 503)
        elif options.forget and b'"tools/call"' in body:
            await app(scope, replay, discard)
            await answer(send, 404)
        else:
            await app(scope, replay, send)

    return wrapped


async def answer(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def listen(listener: socket.socket, *arguments: str) -> None:
    """Serve over streamable HTTP or SSE."""
    parser.parse_args(arguments, options)
    note(f"pid {os.getpid()}")
    app = server.sse_app() if options.transport == "sse" else server.streamable_http_app()
    config = uvicorn.Config(misbehaving(app), log_config=None, timeout_graceful_shutdown=0)
    uvicorn.Server(config).run(sockets=[listener])
