"""The plain way to a server: every POST is answered with one JSON document, and there is no session.

It serves what nearly every agent asks of nearly every server: the handshake, the list of tools, and calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp.types import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from keval_mcp.listing import Listing
from keval_mcp.passage import Passage

__all__ = ["Plain", "read_body", "respond"]


@attrs.frozen(eq=False)
class Plain:
    """Stands for the server `label`, and introduces itself as that."""

    label: str
    listing: Listing

    async def serve(self, passage: Passage, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST of an agent."""
        status, answer = await self._answered(passage, await read_body(receive))
        await respond(send, status, b"" if answer is None else json.dumps(answer, ensure_ascii=False).encode())

    async def _answered(self, passage: Passage, body: bytes) -> tuple[int, dict[str, Any] | None]:
        """Return the status and the JSON-RPC message that answer a body."""
        try:
            message = json.loads(body)
        except ValueError:
            return 400, _error(None, PARSE_ERROR, "the body is no JSON")
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return 400, _error(None, INVALID_REQUEST, "the body is no JSON-RPC message")
        number, method, params = message.get("id"), message.get("method"), message.get("params")
        if not isinstance(method, str) or number is None:  # a response, or a notification
            return 202, None
        try:
            result = await self._result(passage, method, params if isinstance(params, dict) else {})
        except MCPError as refused:
            return 200, _error(number, refused.code, refused.message, refused.data)
        return 200, {"jsonrpc": "2.0", "id": number, "result": result}

    async def _result(self, passage: Passage, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        match method:
            case "tools/call":
                if not isinstance(params.get("name"), str) or not isinstance(params.get("arguments"), dict | None):
                    raise MCPError(INVALID_PARAMS, "a call has a name, and arguments that are an object")
                return await passage.forward(params)
            case "tools/list":
                return {"tools": await passage.list_tools()}
            case "initialize":
                return self._introduction(params.get("protocolVersion"))
            case "ping":
                return {}
        raise MCPError(METHOD_NOT_FOUND, f"Method not found: {method}")

    def _introduction(self, asked: object) -> dict[str, Any]:
        """Return the result of `initialize`, in the revision that client and server both speak."""
        known, version = HANDSHAKE_PROTOCOL_VERSIONS, self.listing.version
        if asked in known and (version not in known or known.index(asked) < known.index(version)):
            version = asked
        introduction = {
            "protocolVersion": version if version in known else known[-1],
            "capabilities": {"tools": {}},
            "serverInfo": self.listing.info or {"name": self.label, "version": ""},
        }
        if self.listing.instructions is not None:
            introduction["instructions"] = self.listing.instructions
        return introduction


async def read_body(receive: Receive) -> bytes:
    """Return the body of a request."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def respond(send: Send, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response: JSON if it has a body."""
    about = [(b"content-length", str(len(body)).encode()), *headers]
    if body:
        about.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})


def _error(number: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": number, "error": error if data is None else {**error, "data": data}}
