"""A server whose tools change: `unlock` adds `enter`, and says so; `unlock_silently` does not say so.

Its argument is how many seconds it takes to list the new ones.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from tests.stdio_server import answer_each, text

LOCKED = ["unlock", "unlock_silently"]
UNLOCKED = [*LOCKED, "enter"]
state = {"tools": LOCKED}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "changing", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            if state["tools"] is UNLOCKED:
                time.sleep(float(sys.argv[1]) if sys.argv[1:] else 0)
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in state["tools"]]}
        case "tools/call" if params["name"] == "enter":
            return {"content": text("inside" if state["tools"] is UNLOCKED else "the door is locked")}
        case "tools/call":
            state["tools"] = UNLOCKED
            if params["name"] == "unlock":
                changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
                sys.stdout.write(json.dumps(changed) + "\n")
                sys.stdout.flush()
            return {"content": text("unlocked")}
    raise LookupError(method)


if __name__ == "__main__":
    answer_each("changing", answer, begins=False)
