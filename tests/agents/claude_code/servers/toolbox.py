"""A real MCP server for the adapter's tests, over stdio, streamable HTTP or SSE, that can misbehave on request.

Over HTTP it prints the port it listens on. Every call it runs is noted in the journal, one line each, and told to the
beacon, for a test that waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
from pathlib import Path

import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["stdio", "http", "sse", "mute"])
parser.add_argument("--journal", type=Path)
parser.add_argument("--beacon", type=int, help="a UDP port")
parser.add_argument("--broken", help="a method to answer with HTTP 503")
options = parser.parse_args()

server = MCPServer("toolbox", log_level="CRITICAL")


def note(line: str) -> None:
    if options.journal:
        with options.journal.open("a", encoding="utf-8") as journal:
            journal.write(line + "\n")
    if options.beacon:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beacon:
            beacon.sendto(line.encode(), ("127.0.0.1", options.beacon))


@server.tool()
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    note(f"add {a} {b}")
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Say it back."""
    note(f"echo {text}")
    return text


@server.tool()
def fail(text: str) -> str:
    """Answer with an error."""
    raise ToolError(text)


@server.tool()
def refuse(text: str) -> str:
    """Answer with an error of the protocol."""
    raise MCPError(code=-32602, message=text)


@server.tool()
def die() -> str:
    """End the process in the middle of a call."""
    note("die")
    sys.stderr.write("toolbox: out of order\n")
    sys.stderr.flush()
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
    """Tell the working directory and the environment, under a name that Claude Code must change."""
    return json.dumps({"directory": str(Path.cwd()), "environment": dict(os.environ)})


def misbehaving(app: ASGIApp) -> ASGIApp:
    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not options.broken:
            await app(scope, receive, send)
            return
        queue = [await receive()]

        async def replay() -> Message:
            return queue.pop() if queue else await receive()

        if f'"{options.broken}"'.encode() in queue[0].get("body", b""):
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, replay, send)

    return wrapped


def main() -> None:
    note(f"pid {os.getpid()}")
    if options.transport == "mute":
        # It comes up, as far as the operating system can tell, and never says a word.
        asyncio.run(asyncio.Event().wait())
    if options.transport == "stdio":
        server.run("stdio")
        return
    app = server.sse_app() if options.transport == "sse" else server.streamable_http_app()
    # Naming TCP is what makes asyncio send small packets at once instead of waiting 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(misbehaving(app), log_config=None, timeout_graceful_shutdown=0)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
