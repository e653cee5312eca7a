"""JSON-RPC messages over HTTP, as JSON that nobody reads more of than is needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from starlette.types import Receive, Send

__all__ = ["answered", "encoded", "notification", "received", "refused", "respond"]


async def received(receive: Receive, send: Send) -> dict[str, Any] | None:
    """Return the message that a request holds; one that holds none is refused, and `None` is returned."""
    try:
        return await _message(receive)
    except MCPError as error:
        await respond(send, 400, encoded(refused(None, error)))
        return None


async def respond(send: Send, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response: JSON if it has a body."""
    about = [(b"content-length", str(len(body)).encode()), *headers]
    if body:
        about.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})


def encoded(message: Mapping[str, Any]) -> bytes:
    """Return a message as JSON, in one line."""
    return json.dumps(message, separators=(",", ":")).encode()


def answered(number: object, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message that answers the request with this id."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that wants no answer; with an `id` it is a request."""
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def refused(number: object, error: MCPError) -> dict[str, Any]:
    """Return the message that refuses the request with this id."""
    about = {"code": error.code, "message": error.message}
    return {"jsonrpc": "2.0", "id": number, "error": about if error.data is None else {**about, "data": error.data}}


async def _message(receive: Receive) -> dict[str, Any]:
    """Return the message that the body of a request holds. Raises MCPError when it holds none."""
    pieces: list[bytes] = []
    while True:
        event = await receive()
        pieces.append(event.get("body", b""))
        if not event.get("more_body"):
            break
    try:
        message = json.loads(b"".join(pieces))
    except ValueError:
        raise MCPError(PARSE_ERROR, "the body is no JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise MCPError(INVALID_REQUEST, "the body is no JSON-RPC message")
    if not isinstance(message.get("params", {}), dict):
        raise MCPError(INVALID_REQUEST, "the parameters are no object")
    if not isinstance(message.get("id"), str | int | None):
        raise MCPError(INVALID_REQUEST, "the id is neither a text nor a number")
    return message
