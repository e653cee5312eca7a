"""A server of the revision 2026-07-28 that speaks of a call under way, as far as the call asks for it.

`work` reports progress, logs, and returns what notifications have come; `hang` is never answered.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

PREFIX = "io.modelcontextprotocol/"
heard: list[str] = []


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "server/discover":
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "logging": {}}}
        case "tools/list":
            schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
            return {"tools": [{"name": name, "inputSchema": schema} for name in ("work", "hang")]}
        case "tools/call":
            meta = params["_meta"]
            if "progressToken" in meta:
                say(method="notifications/progress", params={"progressToken": meta["progressToken"], "progress": 1})
            if PREFIX + "logLevel" in meta:
                say(method="notifications/message", params={"level": "info", "data": "working"})
            return {"content": [{"type": "text", "text": json.dumps(heard)}]}
    raise LookupError(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        heard.append(message["method"])
    elif message.get("params", {}).get("name") != "hang":
        try:
            answer = {"resultType": "complete", **result(message["method"], message.get("params", {}))}
            say(id=message["id"], result=answer)
        except LookupError as error:
            say(id=message["id"], error={"code": -32601, "message": f"no such method: {error}"})
