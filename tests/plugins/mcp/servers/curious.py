"""A server that asks its client what it is told to: `ask` sends the requests that a call has, one after the other.

The tool `who` tells who the client is. With the argument `modern` it speaks nothing but the revision 2026-07-28.
"""

from __future__ import annotations

import json
import queue
import sys

from tests.stdio_server import RefusedError, answer_each, text

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

MODERN, META = "modern" in sys.argv, "io.modelcontextprotocol/"
client: dict[str, Any] = {}
answers: queue.Queue[dict[str, Any]] = queue.Queue()


def begin(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if MODERN != (method == "server/discover"):
        raise RefusedError("not spoken here", {"supported": ["2026-07-28"], "requested": "?"}, code=-32022)
    if MODERN:
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    client.update(info=params["clientInfo"], can=params["capabilities"])
    info = {"name": "curious", "version": "1"}
    return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}


def ask(params: dict[str, Any]) -> dict[str, Any]:
    """Return what the client answers."""
    asked = {str(number): each for number, each in enumerate(params["arguments"]["requests"])}
    if MODERN and "inputResponses" not in params:
        return {"resultType": "input_required", "inputRequests": asked}
    given = list(params["inputResponses"].values()) if MODERN else []
    for number, each in asked.items() if not MODERN else ():
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": f"q{number}", **each}) + "\n")
        sys.stdout.flush()
        said = answers.get(timeout=30)
        given.append(said.get("result") or said.get("error", {}).get("message"))
    return {"resultType": "complete", "content": text(json.dumps(given))}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method in ("initialize", "server/discover"):
        return begin(method, params)
    if method == "tools/list":
        requests = {"requests": {"type": "array", "items": {"type": "object"}}}
        schema = {"type": "object", "properties": requests}
        return {"tools": [{"name": name, "inputSchema": schema} for name in ("ask", "who")]}
    if method == "tools/call" and params["name"] == "ask":
        return ask(params)
    if method == "tools/call":
        meta = params.get("_meta", {})
        now = {"info": meta.get(f"{META}clientInfo"), "can": meta.get(f"{META}clientCapabilities")}
        return {"resultType": "complete", "content": text(json.dumps(now if MODERN else client))}
    raise LookupError(method)


if __name__ == "__main__":
    answer_each("curious", answer, begins=False, heard=answers.put)
