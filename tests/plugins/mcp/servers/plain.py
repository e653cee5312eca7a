"""A server that pages its tools, refuses calls, and answers with data alone or with nonsense."""

from __future__ import annotations

from typing import Any

from tests.stdio_server import RefusedError, answer_each

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method, params.get("name"):
        case "tools/list", _:
            if not params.get("cursor"):
                return {"tools": [{"name": "refuse", "inputSchema": SCHEMA}], "nextCursor": "2"}
            return {"tools": [{"name": "data", "description": "Data alone", "inputSchema": SCHEMA}]}
        case "tools/call", "nonsense":
            return {"content": "no list"}
        case "tools/call", "refuse":
            raise RefusedError("there is no such city", {"city": "Atlantis"})
        case "tools/call", "data":
            return {"content": [], "structuredContent": {"temperature": -3, "wind": None}}
    raise LookupError(method)


answer_each("plain", answer)
