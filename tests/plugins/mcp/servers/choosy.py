"""A server that lists a tool for each capability of its client, beside `echo`, and asks what keval does not know."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.stdio_server import answer_each, text

client: dict[str, Any] = {}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            client.update(params["capabilities"])
            info = {"name": "choosy", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            names = ["echo", *sorted(client), *sys.argv[1:]]
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        case "tools/call":
            return {"content": text(f"{params['name']} for {json.dumps(client, sort_keys=True)}")}
    raise LookupError(method)


if __name__ == "__main__":
    answer_each("choosy", answer, begins=False)
