"""A front: one address at which any number of MCP clients visit a server, each as if it were an attempt at a trial."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import attrs
from starlette.types import Receive, Scope, Send

from keval.plugin import McpServer, ServerLostError
from keval_loopback import refusal
from keval_mcp.passage.passage import Passage
from keval_mcp.settle import settle
from keval_mcp.tap.channel import Channel
from keval_mcp.tap.messages import received, respond
from keval_mcp.tap.route import Route, session_of

__all__ = ["Front"]

PATH = "/mcp"


@attrs.define(eq=False)
class Front:
    """An ASGI application that opens a visit for every session of a client, and one for all that ask without.

    `visit` enters the context and gives the server.
    """

    port: int
    visit: Callable[[], AbstractAsyncContextManager[McpServer]]
    _visits: dict[str | None, _Visit] = attrs.field(factory=dict, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            await respond(send, 404, b'"the server is at /mcp"')
            return
        if status := refusal(scope, self.port):
            await respond(send, status)
            return
        session = session_of(scope)
        if session in self._visits:
            visit = self._visits[session]
            await visit.route.serve(scope, receive, send)
            # The stream of events and the request that ends the session return one after the other.
            if session is not None and not visit.route.sessions and self._visits.pop(session, None) is visit:
                await visit.end()
        elif session is None and scope["method"] == "POST":
            await self._welcome(receive, send)
        else:
            await respond(send, 405 if session is None else 404)

    async def close(self) -> None:
        """End all visits."""
        visits, self._visits = [*self._visits.values()], {}
        await asyncio.gather(*(visit.end() for visit in visits))

    async def _welcome(self, receive: Receive, send: Send) -> None:
        message = await received(receive, send)
        if message is None:
            return
        try:
            visit = await _Visit.begin(self.visit)
        except ServerLostError as lost:
            await respond(send, 502, str(lost).encode(), (b"content-type", b"text/plain"))
            return
        await visit.route.post(message, None, send)
        for session in visit.route.sessions or (None,):
            self._visits[session] = visit


@attrs.define(eq=False)
class _Visit:
    """One client's visit. A task of its own enters and leaves the context."""

    route: Route
    _left: asyncio.Event
    _owner: asyncio.Task[None]

    @classmethod
    async def begin(cls, visit: Callable[[], AbstractAsyncContextManager[McpServer]]) -> _Visit:
        left = asyncio.Event()
        entered: asyncio.Future[Passage] = asyncio.get_running_loop().create_future()

        async def own() -> None:
            try:
                async with visit() as server:
                    assert isinstance(server.channel, Channel)  # noqa: S101 - the server proxy of this package made it
                    entered.set_result(server.channel.passage)
                    await left.wait()
            except Exception as error:  # noqa: BLE001 - a seam: who waits to enter is told
                if not entered.done():
                    entered.set_exception(error)

        owner = asyncio.create_task(own(), name="a visit to a server")
        return cls(Route(await entered, always_sessions=True), left, owner)

    async def end(self) -> None:
        await self.route.close()
        self._left.set()
        await settle(self._owner)
