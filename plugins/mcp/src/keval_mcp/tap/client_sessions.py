"""Sessions of any number of MCP clients at one address, each as if it were an attempt at a trial."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import attrs
from starlette.types import Receive, Scope, Send

from keval.errors import ServerLostError
from keval.records.servers import McpServer
from keval_loopback.loopback import refusal
from keval_mcp.passage.passage import Passage
from keval_mcp.server.waiting import settle
from keval_mcp.tap.agent_session import received, respond
from keval_mcp.tap.channel import Channel
from keval_mcp.tap.http import Route, session_of

PATH = "/mcp"


@attrs.define(eq=False)
class ClientSessions:
    """An ASGI application that opens a server for every session of a client, and one for all clients without a session.

    `open_server` enters the context and gives the server.
    """

    port: int
    open_server: Callable[[], AbstractAsyncContextManager[McpServer]]
    _clients: dict[str | None, _Client] = attrs.field(factory=dict, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            await respond(send, 404, b'"the server is at /mcp"')
            return
        if status := refusal(scope, self.port):
            await respond(send, status)
            return
        session = session_of(scope)
        if session in self._clients:
            client = self._clients[session]
            await client.route.serve(scope, receive, send)
            # The stream of events and the request that ends the session return one after the other.
            if session is not None and not client.route.sessions and self._clients.pop(session, None) is client:
                await client.end()
        elif session is None and scope["method"] == "POST":
            await self._welcome(receive, send)
        else:
            await respond(send, 405 if session is None else 404)

    async def close(self) -> None:
        """End all clients."""
        clients, self._clients = [*self._clients.values()], {}
        await asyncio.gather(*(client.end() for client in clients))

    async def _welcome(self, receive: Receive, send: Send) -> None:
        message = await received(receive, send)
        if message is None:
            return
        try:
            client = await _Client.begin(self.open_server)
        except ServerLostError as lost:
            await respond(send, 502, str(lost).encode(), (b"content-type", b"text/plain"))
            return
        await client.route.post(message, None, send)
        for session in client.route.sessions or (None,):
            self._clients[session] = client


@attrs.define(eq=False)
class _Client:
    """One client of the server. A task of its own enters and leaves the context."""

    route: Route
    _left: asyncio.Event
    _owner: asyncio.Task[None]

    @classmethod
    async def begin(cls, open_server: Callable[[], AbstractAsyncContextManager[McpServer]]) -> _Client:
        left = asyncio.Event()
        entered: asyncio.Future[Passage] = asyncio.get_running_loop().create_future()

        async def own() -> None:
            try:
                async with open_server() as server:
                    assert isinstance(server.channel, Channel)  # noqa: S101 - the server proxy of this package made it
                    entered.set_result(server.channel.passage)
                    await left.wait()
            except Exception as error:  # noqa: BLE001 - a seam: who waits to enter is told
                if not entered.done():
                    entered.set_exception(error)

        owner = asyncio.create_task(own(), name="a client of a server")
        return cls(Route(await entered, always_sessions=True), left, owner)

    async def end(self) -> None:
        await self.route.close()
        self._left.set()
        await settle(self._owner)
