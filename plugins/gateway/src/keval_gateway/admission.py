"""Admitting a request: it is addressed to loopback and has the key, in any of the forms the SDKs send one."""

from __future__ import annotations

import hmac

from starlette.requests import Request

from keval_gateway.chat import ModelFault

__all__ = ["admit"]

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


def admit(request: Request, token: str | None) -> None:
    """Refuse a request without the token, and one for another host than loopback.

    A web page sends the latter when DNS has led its host name to loopback.

    Raises:
        ModelFault: what the request is refused with.
    """
    host = request.headers.get("host", "")
    if host.rpartition(":")[0] not in _LOOPBACK and host not in _LOOPBACK:
        raise ModelFault(421, f"this gateway answers on loopback only, not as {host!r}")
    if token is not None and not hmac.compare_digest(_key(request).encode(), token.encode()):
        raise ModelFault(401, "the API key is not this gateway's token")


def _key(request: Request) -> str:
    """Return the API key in whichever form an SDK sent it."""
    headers = request.headers
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return bearer
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or request.query_params.get("key", "")
