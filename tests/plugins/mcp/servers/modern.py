"""A server that speaks nothing but the revision 2026-07-28, which has no sessions, written without the SDK.

Its tool `order` needs a form filled in, and the client's folders, before it answers.
"""

from __future__ import annotations

import json

from tests.stdio_server import RefusedError, answer_each

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

VERSION = "2026-07-28"
FORM = {"type": "object", "properties": {"size": {"type": "string", "default": "small"}}, "required": ["size"]}
NEEDED = {
    "form": {"method": "elicitation/create", "params": {"message": "Which size?", "requestedSchema": FORM}},
    "folders": {"method": "roots/list"},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta") or {}
    if meta.get("io.modelcontextprotocol/protocolVersion") != VERSION:
        raise RefusedError("not spoken here", {"supported": [VERSION], "requested": "?"}, code=-32022)
    match method, params.get("name"):
        case "server/discover", _:
            info = {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}}
            able = {"tools": {"listChanged": True}}
            found = {"supportedVersions": [VERSION], "capabilities": able, "instructions": "Order here."}
            return {"resultType": "complete", "_meta": info, **found, "ttlMs": 0, "cacheScope": "private"}
        case "tools/list", _:
            tool = {"name": "order", "description": "Order one.", "inputSchema": {"type": "object"}}
            return {"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"}
        case "tools/call", "order":
            if params.get("requestState") != "asked":
                return {"resultType": "input_required", "inputRequests": NEEDED, "requestState": "asked"}
            given = params["inputResponses"]
            known = {"can": sorted(meta["io.modelcontextprotocol/clientCapabilities"]), "given": given}
            content = [{"type": "text", "text": json.dumps(known, sort_keys=True)}]
            return {"resultType": "complete", "content": content}
    raise LookupError(method)


answer_each("modern", answer, begins=False)
