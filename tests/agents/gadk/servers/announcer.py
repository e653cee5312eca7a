"""A server with one tool; with `announces` it says that it announces changes of its list."""

from __future__ import annotations

import sys
from typing import Any

from tests.stdio_server import answer_each

TOOL = {"name": "get_weather", "description": "", "inputSchema": {"type": "object", "properties": {}}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            tools = {"listChanged": True} if sys.argv[1:] == ["announces"] else {}
            info = {"name": "announcer", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": tools}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
    raise LookupError(method)


if __name__ == "__main__":
    answer_each("announcer", answer, begins=False)
