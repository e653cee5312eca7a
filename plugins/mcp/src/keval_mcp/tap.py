"""The tap: a loopback MCP server that stands for another one, with a URL for every attempt at a trial."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import attrs
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from keval_mcp.call_proxy import CallProxy
from keval_mcp.listing import Listing
from keval_mcp.settle import settle

__all__ = ["Tap", "tap"]

_CALLS = "keval.calls"
_DAY = 24 * 60 * 60


@attrs.define(eq=False)
class Tap:
    """An ASGI application that finds the call proxy that a URL stands for and leaves the protocol to the SDK."""

    port: int
    _sessions: StreamableHTTPSessionManager
    _routes: dict[str, CallProxy] = attrs.field(factory=dict, init=False)

    @asynccontextmanager
    async def open(self, calls: CallProxy) -> AsyncIterator[str]:
        """Yield the URL that leads to `calls`; afterwards the URL is unknown and no call is under way."""
        path = f"/{secrets.token_urlsafe(16)}/mcp"
        self._routes[path] = calls
        try:
            yield f"http://127.0.0.1:{self.port}{path}"
        finally:
            del self._routes[path]
            await calls.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        calls = self._routes.get(scope["path"])
        if calls is None:
            refusal = PlainTextResponse("no attempt at a trial has this URL now", status_code=404)
            await refusal(scope, receive, send)
        elif scope["method"] != "POST":
            # There is no session to end and nothing that the server would say unasked.
            await PlainTextResponse("", status_code=405, headers={"allow": "POST"})(scope, receive, send)
        else:
            await self._sessions.handle_request({**scope, _CALLS: calls}, receive, send)


@asynccontextmanager
async def tap(label: str, listing: Listing) -> AsyncIterator[Tap]:
    """Serve the tools of `listing` on loopback until the end of the context.

    The list is the one read before the first trial, so that every trial is offered the same tools.
    """
    # With the protocol named, asyncio switches Nagle's algorithm off; it costs 40 ms a call otherwise.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        port = listener.getsockname()[1]
        sessions = StreamableHTTPSessionManager(
            _server(label, listing),
            stateless=True,
            json_response=True,
            security_settings=TransportSecuritySettings(allowed_hosts=[f"127.0.0.1:{port}"]),
        )
        tapped = Tap(port, sessions)
        config = uvicorn.Config(
            tapped,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            # A connection closed here while idle could cost the agent that is just reusing it a call.
            timeout_keep_alive=_DAY,
        )
        web = _WebServer(config)
        owner = asyncio.create_task(_serve(sessions, web, listener), name=f"tap of {label}")
        try:
            yield tapped
        finally:
            web.stop()
            await settle(owner)
        owner.result()


class _WebServer(uvicorn.Server):
    """A uvicorn server that leaves signals to whoever runs the loop, and ends as soon as it is told to."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        # uvicorn's own looks ten times a second. The tick renews the header `Date`.
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn's own gives calls 0.1 s; here every attempt has ended, and its calls with it.
        for server in self.servers:
            server.close()
        for connection in [*self.server_state.connections]:
            connection.shutdown()
        tasks = [*self.server_state.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(sessions: StreamableHTTPSessionManager, web: _WebServer, listener: socket.socket) -> None:
    async with sessions.run():
        await web.serve(sockets=[listener])


def _server(label: str, listing: Listing) -> Server[Any]:
    """Return an MCP server that introduces itself as the one it stands for."""

    async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(listing.tools))

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        calls: CallProxy = context.request.scope[_CALLS]
        return await calls.forward(params)

    schemas = {tool.name: tool.input_schema for tool in listing.tools}
    info = listing.info
    return Server(
        info.name if info else label,
        version=info.version if info else "",
        title=info.title if info else None,
        description=info.description if info else None,
        website_url=info.website_url if info else None,
        icons=info.icons if info else None,
        instructions=listing.instructions,
        get_tool_input_schema=schemas.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
