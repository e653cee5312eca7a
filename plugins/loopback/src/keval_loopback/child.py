"""The side of a server's process that keval has started, or somebody by hand: serving until it is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from starlette.types import ASGIApp

from keval_loopback.serving import serve

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
                print(f'{{"port": {base.rpartition(":")[2]}}}', flush=True)  # noqa: T201 - for `process.run_server`
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
