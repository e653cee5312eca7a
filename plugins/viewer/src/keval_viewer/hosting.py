"""What the commands that serve pages share: the port that they listen on, and how they are told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from keval.plugin import ConfigError
from keval_loopback import listen

__all__ = ["listener_on", "open_browser", "stopping"]


def listener_on(port: int | None, usual: int) -> socket.socket:
    """Listen on a port, or without one on the `usual` one, or on a free one if that is taken. Raises ConfigError."""
    if port is None:
        with suppress(OSError):
            return listen(usual)
    try:
        return listen(port or 0)
    except OSError as error:
        raise ConfigError(f"port {port}: {error.strerror}; choose another with --port, or 0") from error


@contextmanager
def stopping() -> Iterator[asyncio.Event]:
    """Yield what is set by Ctrl-C, and when the process is told to end. A second Ctrl-C ends it at once."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        event.set()
        forget()

    def forget() -> None:
        for number in numbers:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
        # A shell starts background processes with SIGINT ignored; Python's own handler is wanted there, too.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for number in numbers:
        with suppress(NotImplementedError):  # on Windows, Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stop)
    try:
        yield event
    finally:
        forget()


async def open_browser(url: str) -> None:
    """Open a URL in the user's browser, if it would have a window; else Python opens one in the terminal."""
    windows = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in windows):
        await asyncio.to_thread(webbrowser.open, url)
