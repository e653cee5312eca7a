"""Which requests are refused, because a foreign web page may have sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["refusal"]

_HOSTS = ("127.0.0.1", "localhost", "[::1]")


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
