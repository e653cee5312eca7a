"""The tally server over streamable HTTP, made with the SDK; `sessions` knows only the protocol with sessions."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.end_to_end.servers.tally import TOOLS, Call, tell
from tests.stdio_server import RefusedError, ToolFailedError


def listen(listener: socket.socket, journal: Path, protocol: str) -> None:
    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        meta, headers = context.meta or {}, context.request.headers
        trial, attempt = (meta.get(f"keval/{of}") or unquote(headers[f"x-keval-{of}"]) for of in ("trial", "attempt"))

        def vanish() -> None:
            context.request.scope["tally.vanished"] = True

        call = Call(trial, attempt, params.name, params.arguments or {})
        try:
            said, failed = await asyncio.to_thread(tell, journal, call, vanish), False
        except ToolFailedError as error:
            said, failed = str(error), True
        except RefusedError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        return CallToolResult(content=[TextContent(type="text", text=said)], is_error=failed)

    server = Server("tally", on_list_tools=list_tools, on_call_tool=call_tool)
    app = forgetful(server.streamable_http_app(), protocol == "sessions")
    uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[listener])


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
