"""An MCP server over stdio, as a program: it adds and divides. It starts in no time, as it needs no SDK."""

from __future__ import annotations

import json
import sys
from typing import Any

_NUMBERS = {"type": "object", "required": ["a", "b"], "properties": {name: {"type": "integer"} for name in ("a", "b")}}
_TOOLS = [
    {"name": "add", "description": "Add two whole numbers.", "inputSchema": _NUMBERS},
    {"name": "divide", "description": "Divide one whole number by another.", "inputSchema": _NUMBERS},
]


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        told = {"name": "sums", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": told}
    if method == "tools/list":
        return {"tools": _TOOLS}
    if method == "tools/call":
        a, b = params["arguments"]["a"], params["arguments"]["b"]
        failed = params["name"] == "divide" and b == 0
        text = "nothing can be divided by zero" if failed else str(a + b if params["name"] == "add" else a // b)
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return {} if method == "ping" else None


def _main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = _result(request["method"], request.get("params") or {})
        unknown = {"error": {"code": -32601, "message": f"no method {request['method']}"}}
        answer = unknown if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)  # noqa: T201 - the protocol


if __name__ == "__main__":
    _main()
