"""A socket that listens on loopback; what connects before anybody serves it waits."""

from __future__ import annotations

import socket

__all__ = ["inherited", "listen"]

_WAITING = 2048
"""Connections that may wait to be accepted."""


def listen(port: int = 0) -> socket.socket:
    """Listen on a port of 127.0.0.1; 0 takes a free one. Raises OSError when the port is taken."""
    # With the protocol named, asyncio switches Nagle's algorithm off; it costs 40 ms a request otherwise.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(_WAITING)
    except OSError:
        listener.close()
        raise
    return listener


def inherited(descriptor: int) -> socket.socket:
    """Return the listening socket that the parent process has passed on by its descriptor."""
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=descriptor)
