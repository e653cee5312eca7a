"""A port of loopback to listen on, and which requests to it are refused, as a foreign web page may have sent them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

_WAITING = 2048
"""Connections that may wait to be accepted."""
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


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


def refusal(scope: Scope, port: int) -> int | None:
    """Return the status that refuses a request to a server on this port; `None` lets it pass.

    A page whose host name DNS has led to loopback gives itself away by `Host` (421), any other page by `Origin` (403).
    """
    here = {f"{host}:{port}".encode() for host in _HOSTS}
    if port == 80:
        here |= {host.encode() for host in _HOSTS}
    hosts, origins = (
        [value.lower() for name, value in scope["headers"] if name == wanted] for wanted in (b"host", b"origin")
    )
    if len(hosts) != 1 or hosts[0] not in here:
        return 421
    return 403 if any(origin.removeprefix(b"http://") not in here for origin in origins) else None
