"""A small MCP server made with the SDK."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Literal

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("weather", log_level="ERROR")


@server.tool()
def get_weather(city: str, units: Literal["metric", "imperial"] = "metric") -> str:
    """Current weather of a city."""
    return f"{city}: 21 degrees, {units}"


@server.tool()
async def get_slow_weather(city: str, seconds: float) -> str:
    """Current weather of a city, after a while."""
    await anyio.sleep(seconds)
    return f"{city}: slow"


@server.tool()
def fail(reason: str) -> str:
    """Fail for a reason."""
    raise ToolError(reason)


@server.tool()
def process_id() -> str:
    """The process id of this server."""
    return str(os.getpid())


@server.tool()
async def hang(path: str) -> str:
    """Write this server's process id into a file, and never answer."""
    await anyio.Path(path).write_text(str(os.getpid()), encoding="utf-8")
    await anyio.sleep_forever()
    return "never"


@server.tool()
def die(path: str) -> str:
    """Add a line to a file, then end this process at once."""
    with Path(path).open("a", encoding="utf-8") as runs:
        runs.write("run\n")
    os._exit(3)


def listen(listener: socket.socket, transport: str) -> None:
    """Serve over streamable HTTP, or over SSE."""
    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
