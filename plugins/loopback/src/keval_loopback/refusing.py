"""Which requests are refused, because a foreign web page may have sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["refusal"]

_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def refusal(scope: Scope, port: int) -> int | None:
    """Return the status that refuses a request to a server on this port; `None` lets it pass.

    A page whose name resolves to loopback gives itself away by `Host` (421), any other page by `Origin` (403).
    """
    hosts = {f"{host}:{port}".encode() for host in _HOSTS}
    headers = dict(scope["headers"])
    if headers.get(b"host") not in hosts:
        return 421
    origin = headers.get(b"origin")
    return None if origin is None or origin.removeprefix(b"http://") in hosts else 403
