"""Admitting a request: it is addressed to this port of loopback, comes from no web page, is small, and has the key."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.requests import Request

from keval_gateway.chat import ChatRequest, ModelFault
from keval_loopback.loopback import refusal

MOST_BYTES = 32 * 1024 * 1024
"""Bytes of a request's body; Anthropic's API takes as many."""
_MOST_DISCARDED = 4 * MOST_BYTES
_MOST_NODES = 20_000
_DEEPEST = 64
"""Values in a JSON Schema, and levels of it. OpenAI's API takes 5,000 properties on 10 levels."""


def admit(request: Request, token: str | None) -> None:
    """Refuse a request without the token, one for another host or port than this, and one of a web page of another.

    A web page sends the former two when DNS has led its host name to loopback, and names itself in `Origin` always.

    Raises:
        ModelFault: what the request is refused with.
    """
    _, port = request.scope.get("server") or ("", 0)
    status, headers = refusal(request.scope, port), request.headers
    if status == 421:
        host = headers.get("host", "")
        raise ModelFault(421, f"this gateway answers on loopback only, on its own port, not as {host[:200]!r}")
    if status is not None:
        origins = ", ".join(headers.getlist("origin"))
        raise ModelFault(status, f"this gateway answers no web page of {origins[:200]!r}")
    # In constant time, as how long a comparison takes would tell how much of a guess is right.
    if token is not None and not hmac.compare_digest(key_of(request).encode(), token.encode()):
        raise ModelFault(401, "the API key is not this gateway's; hand on the one that was given with its address")


def key_of(request: Request) -> str:
    """Return the API key in whichever form an SDK sent it."""
    headers = request.headers
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return bearer
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or request.query_params.get("key", "")


async def read_body(request: Request) -> bytes:
    """Read a request's body, and keep no more of it than it may have. Raises ModelFault."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MOST_BYTES:
            chunks.append(chunk)
        else:
            chunks.clear()
            # A client that is still sending may not see the refusal, so what is a little too large is read to its end.
            if size > _MOST_DISCARDED:
                break
    if size > MOST_BYTES:
        raise ModelFault(413, f"the request's body is larger than {MOST_BYTES:,} bytes; send less")
    return b"".join(chunks)


def check_schemas(asked: ChatRequest) -> None:
    """Refuse JSON Schemas that are too large or nested too deeply to be filled in. Raises ModelFault."""
    for tool in asked.tools:
        _check_schema(tool.parameters, f"the schema of the tool {tool.name[:100]!r}")
    if asked.response_schema is not None:
        _check_schema(asked.response_schema, "the schema of the response")


def _check_schema(schema: Any, which: str) -> None:
    # Level by level, as a recursion would fail on the depth that it is to refuse.
    left = _MOST_NODES
    level: list[Any] = [schema]
    for _ in range(_DEEPEST + 1):
        if not level:
            return
        left -= len(level)
        if left < 0:
            raise ModelFault(
                400, f"{which} has more than {_MOST_NODES:,} values; leave out what the model need not know"
            )
        level = [item for value in level for item in _items(value)]
    raise ModelFault(400, f"{which} is nested more than {_DEEPEST} levels deep; write it flatter, with $defs")


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()
