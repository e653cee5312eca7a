"""Serving an application on a loopback port, in the loop that is running, for a while or until the process ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keval.execute.shielding import settle
from keval_loopback.loopback import listen

CLOSE = "keval.close"
"""The key in the state of a request's scope under which the function is that closes its connection."""

_KEEP_ALIVE = 75.0
"""Seconds: longer than clients keep an idle connection, as a request on one that is being closed is lost."""


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol; an application may close the connection, for which ASGI has no message."""

    app_state: dict[str, Any]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.app_state = {**self.app_state, CLOSE: transport.close}


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the program it runs in, and ends as soon as it is told to."""

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
        # uvicorn's own gives requests 0.1 s; here nobody waits for their answers any more.
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in [*self.server_state.connections]:
            connection.shutdown()
            # uvicorn would answer a request that is cancelled with 500, as if the application were broken.
            connection.transport.close()
        tasks = [*self.server_state.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def disconnected(receive: Receive) -> None:
    """Wait until the client of a request hangs up; the request's body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def serve(
    app: ASGIApp, port: int = 0, listener: socket.socket | None = None, *, keep_alive: float = _KEEP_ALIVE
) -> AsyncIterator[str]:
    """Serve `app` on 127.0.0.1 and yield `http://127.0.0.1:PORT`; port 0 takes a free one.

    With `listener`, that socket is served, and closed at the end. An idle connection is kept for `keep_alive` seconds.
    Requests still being answered at the end are dropped. Raises OSError when the port is taken.
    """
    listener = listener or listen(port)
    config = uvicorn.Config(
        app,
        http=_Protocol,
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        ws="none",
        proxy_headers=False,
        timeout_keep_alive=int(keep_alive),
    )
    server = _Server(config)
    # The socket listens already, so clients that connect before uvicorn accepts simply wait.
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        await settle(running)  # also while being cancelled: its port would stay taken
    running.result()


_END_SECONDS = 1.0
"""Seconds after a signal within which the process ends, also if something holds up its event loop."""


@asynccontextmanager
async def serving_until_ended(app: ASGIApp, listener: socket.socket, *, child: bool) -> AsyncIterator[str]:
    """Serve an application on a socket, and yield its base URL; at the end of the block, wait until it is to end.

    SIGINT and SIGTERM end it, and as a `child` of keval the end of stdin, too, which closes even when keval is killed.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with _on_signals(lambda: loop.call_soon_threadsafe(stop.set)):
        async with serve(app, listener=listener) as base:
            if child:
                _on_stdin_closed(lambda: loop.call_soon_threadsafe(stop.set))
                print(f'{{"port": {base.rpartition(":")[2]}}}', flush=True)  # noqa: T201 - for the parent
            yield base
            await stop.wait()


@contextmanager
def _on_signals(call: Callable[[], object]) -> Iterator[None]:
    """Call back on SIGINT and SIGTERM, and end the process soon after, also if the event loop is held up."""

    def end(number: int, frame: object) -> None:
        call()
        timer = threading.Timer(_END_SECONDS, os._exit, [0])
        timer.daemon = True
        timer.start()

    usual = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _on_stdin_closed(call: Callable[[], object]) -> None:
    """Call back when stdin closes, which it does when the parent ends, even by SIGKILL."""

    def wait() -> None:
        # os.read, not sys.stdin: a thread inside a buffered reader would hang the interpreter's exit.
        while os.read(0, 4096):
            pass
        call()

    threading.Thread(target=wait, daemon=True).start()
