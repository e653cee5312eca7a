"""A web server on loopback that begins and ends with its context, and what it refuses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias

import uvicorn
from starlette.types import Receive, Scope, Send

from keval_mcp.settle import settle

__all__ = ["listening", "refusal", "serving"]

_DAY = 24 * 60 * 60
_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_App: TypeAlias = Callable[[Scope, Receive, Send], Any]


@contextmanager
def listening(port: int = 0) -> Iterator[socket.socket]:
    """Yield a socket that listens on a port of loopback; 0 takes a free one. Raises OSError if it is taken."""
    # With the protocol named, asyncio switches Nagle's algorithm off; it costs 40 ms a call otherwise.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(2048)
        yield listener


@asynccontextmanager
async def serving(label: str, app: _App, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an application until the end of the context."""
    config = uvicorn.Config(
        app,
        http="httptools",
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        # A connection closed here while idle could cost the agent that is just reusing it a call.
        timeout_keep_alive=_DAY,
    )
    web = _WebServer(config)
    owner = asyncio.create_task(web.serve(sockets=[listener]), name=label)
    try:
        yield
    finally:
        web.stop()
        await settle(owner)
    owner.result()


def refusal(scope: Scope, port: int) -> int | None:
    """Return the status that refuses a request that a foreign web page may have sent; `None` lets it pass."""
    hosts = {f"{host}:{port}".encode() for host in _HOSTS}
    headers = dict(scope["headers"])
    if headers.get(b"host") not in hosts:
        return 421
    origin = headers.get(b"origin")
    return None if origin is None or origin.removeprefix(b"http://") in hosts else 403


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
