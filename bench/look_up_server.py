"""An MCP server over stdio with one tool, read-only and without an SDK, so that it costs next to nothing."""

from __future__ import annotations

import json
import sys

_TOOL = {
    "name": "look_up",
    "description": "Looks it up.",
    "inputSchema": {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
    "annotations": {"readOnlyHint": True},
}
_RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "keys", "version": "1"},
    },
    "tools/list": {"tools": [_TOOL]},
    "ping": {},
    "tools/call": {"content": [{"type": "text", "text": "It is under the mat."}]},
}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        known = asked["method"] in _RESULTS
        outcome = {"result": _RESULTS[asked["method"]]} if known else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **outcome}), flush=True)
