"""An MCP server that keeps a journal of every call it executes, one JSON line each, to hold transcripts against.

`tally.py JOURNAL` serves over stdio. `tally.py JOURNAL http|sessions FD` serves over streamable HTTP on a listening
socket; `sessions` knows only the protocol with sessions. Over HTTP it ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

JOURNAL = Path(sys.argv[1])
TOGETHER_SECONDS = 20.0

TEXT = {"type": "string"}
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "look": ("Answers with the number of the call.", {"where": TEXT}),
    "pick": ("Takes any number but 13, which the server refuses.", {"number": {"type": "integer"}}),
    "fail": ("Answers with an error.", {}),
    "recover": ("Answers with an error, and when called again with a result.", {"where": TEXT}),
    "meet": ("Answers when two calls with the same key are under way.", {"key": TEXT}),
    "vanish": ("Meets another call; when a trial asks first, the session is lost instead of an answer.", {"key": TEXT}),
}

serials = itertools.count(1)
waiting: dict[tuple[str, str], asyncio.Barrier] = {}


def about(context: Any) -> dict[str, str]:
    """Return which attempt at which trial a call belongs to, as keval says it behind the tap and without."""
    meta, headers = context.meta or {}, context.request.headers if context.request else {}
    return {
        name: meta.get(f"keval/{name}")
        or unquote(headers.get(f"x-keval-{name}", ""))
        or os.environ[f"KEVAL_{name.upper()}"]
        for name in ("trial", "attempt")
    }


def note(entry: dict[str, Any]) -> bool:
    """Write a call down, and return whether its trial had called the tool before, whatever process served it."""
    with JOURNAL.open("a+", encoding="utf-8") as journal:
        journal.seek(0)
        earlier = [(line["trial"], line["tool"]) for line in map(json.loads, journal)]
        journal.write(json.dumps(entry) + "\n")
    return (entry["trial"], entry["tool"]) in earlier


async def met(told: dict[str, str], key: str) -> None:
    """Wait until a second call of this attempt has come this far."""
    barrier = waiting.setdefault((told["attempt"], key), asyncio.Barrier(2))
    async with asyncio.timeout(TOGETHER_SECONDS):
        await barrier.wait()


async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
    told, tool, arguments = about(context), params.name, params.arguments or {}
    serial = f"{os.getpid()}.{next(serials)}"
    repeated = note({**told, "tool": tool, "arguments": arguments, "serial": serial})
    if missing := TOOLS[tool][1].keys() - arguments.keys():
        raise MCPError(INVALID_PARAMS, f"{tool} needs {', '.join(missing)}")
    if arguments.get("number") == 13:
        raise MCPError(INVALID_PARAMS, "13 is no number to pick")
    if tool in ("meet", "vanish"):
        await met(told, arguments["key"])
    if tool == "vanish" and not repeated:
        if context.request is None:
            os._exit(3)
        context.request.scope["tally.vanished"] = True
    failed = tool == "fail" or (tool == "recover" and not repeated)
    return CallToolResult(content=[TextContent(type="text", text=serial)], is_error=failed)


async def list_tools(context: Any, params: Any) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            Tool(
                name=name,
                description=description,
                input_schema={"type": "object", "properties": properties, "required": list(properties)},
            )
            for name, (description, properties) in TOOLS.items()
        ]
    )


server = Server("tally", on_list_tools=list_tools, on_call_tool=call_tool)


def forgetful(app: ASGIApp, sessions: bool) -> ASGIApp:
    """Answer a call during which the session vanished as a server does that no longer knows it."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if sessions and b"mcp-method" in dict(scope["headers"]):
            await respond(send, 400)
            return
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await app(scope, receive, hold if scope["method"] == "POST" else send)
        if scope.get("tally.vanished"):
            await respond(send, 404)
            return
        for message in held:
            await send(message)

    return serve


async def respond(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def serve_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def serve_http(sessions: bool, listening: socket.socket) -> None:
    import uvicorn

    def follow() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=follow, daemon=True).start()
    app = forgetful(server.streamable_http_app(), sessions)
    uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listening])


if __name__ == "__main__":
    JOURNAL.touch()
    if len(sys.argv) == 2:
        asyncio.run(serve_stdio())
    else:
        serve_http(sys.argv[2] == "sessions", socket.socket(fileno=int(sys.argv[3])))
