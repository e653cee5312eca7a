"""The tap: a loopback MCP server that stands for another one, with a URL for every attempt at a trial."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import attrs
import uvicorn
from starlette.types import Receive, Scope, Send

from keval_mcp.listing import Listing
from keval_mcp.passage import Passage
from keval_mcp.plain import Plain, respond
from keval_mcp.settle import settle

__all__ = ["Tap", "tap"]

_DAY = 24 * 60 * 60
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


@attrs.define(eq=False)
class Tap:
    """An ASGI application that finds the passage that a URL stands for."""

    port: int
    _plain: Plain
    _routes: dict[str, Passage] = attrs.field(factory=dict, init=False)
    _hosts: frozenset[bytes] = attrs.field(init=False)
    _origins: frozenset[bytes] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._hosts = frozenset(f"{host}:{self.port}".encode() for host in _HOSTS)
        self._origins = frozenset(b"http://" + host for host in self._hosts)

    @asynccontextmanager
    async def open(self, passage: Passage) -> AsyncIterator[str]:
        """Yield the URL that leads to `passage`; afterwards the URL is unknown and no call is under way."""
        path = f"/{secrets.token_urlsafe(16)}/mcp"
        self._routes[path] = passage
        try:
            yield f"http://127.0.0.1:{self.port}{path}"
        finally:
            del self._routes[path]
            await passage.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passage = self._routes.get(scope["path"])
        if passage is None:
            await respond(send, 404, b'"no attempt at a trial has this URL now"')
        elif refused := self._refused(scope):
            await respond(send, refused)
        elif scope["method"] != "POST":
            # There is no session to end and nothing that the server would say unasked.
            await respond(send, 405, b"", (b"allow", b"POST"))
        else:
            await self._plain.serve(passage, scope, receive, send)

    def _refused(self, scope: Scope) -> int | None:
        """Return the status that refuses a request that a foreign web page may have sent; `None` lets it pass."""
        headers = dict(scope["headers"])
        if headers.get(b"host") not in self._hosts:
            return 421
        return 403 if headers.get(b"origin", b"") not in {b"", *self._origins} else None


@asynccontextmanager
async def tap(label: str, listing: Listing) -> AsyncIterator[Tap]:
    """Serve the tools of `listing` on loopback until the end of the context."""
    # With the protocol named, asyncio switches Nagle's algorithm off; it costs 40 ms a call otherwise.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        tapped = Tap(listener.getsockname()[1], Plain(label, listing))
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
        owner = asyncio.create_task(web.serve(sockets=[listener]), name=f"tap of {label}")
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
