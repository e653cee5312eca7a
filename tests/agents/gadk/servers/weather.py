"""A small MCP server for tests: `weather.py stdio`, or `weather.py http|sse FD` with FD a listening socket.

`weather.py stdio tides` knows the tides instead, until it forgets them.
"""

from __future__ import annotations

import os
import socket
import sys
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
    sys.stderr.write("the weather station caught fire\n")
    sys.stderr.flush()
    os._exit(3)


tides = MCPServer("tides", log_level="ERROR")


@tides.tool()
def get_tides(city: str) -> str:
    """The tide of a city."""
    return f"{city}: high"


@tides.tool()
def forget_tides() -> str:
    """Stop knowing the tides."""
    tides.remove_tool("get_tides")
    return "forgotten"


if __name__ == "__main__":
    if sys.argv[1:] == ["stdio", "tides"]:
        tides.run("stdio")
    elif sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        listening = socket.socket(fileno=int(sys.argv[2]))
        app = server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app()
        web = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        web.run(sockets=[listening])
