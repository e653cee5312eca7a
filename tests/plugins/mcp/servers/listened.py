"""A server of the revision 2026-07-28 that tells who listens for it that its tools change: `unlock` adds `enter`.

`drop` ends the listening. Each result says how many listen.
"""

from __future__ import annotations

import json
import sys
from typing import Any

PREFIX = "io.modelcontextprotocol/"
tools = ["unlock", "drop"]
listening: list[Any] = []


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def stamped(number: Any, **more: Any) -> dict[str, Any]:
    return {**more, "_meta": {PREFIX + "subscriptionId": number}}


def call(name: str) -> dict[str, Any]:
    count = len(listening)
    if name == "unlock":
        tools.append("enter")
        for number in listening:
            say(method="notifications/tools/list_changed", params=stamped(number))
    elif name == "drop":
        while listening:
            say(id=listening[0], result=stamped(listening.pop(0)))
    return {"content": [{"type": "text", "text": f"{count} listening"}]}


for line in sys.stdin:
    message = json.loads(line)
    params, number = message.get("params", {}), message.get("id")
    result: dict[str, Any] | None = None
    match message["method"]:
        case "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
        case "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
        case "tools/call":
            result = call(params["name"])
        case "subscriptions/listen":
            listening.append(number)
            told = stamped(number, notifications=params["notifications"])
            say(method="notifications/subscriptions/acknowledged", params=told)
            continue
    if result is not None:
        say(id=number, result={"resultType": "complete", **result})
    elif number is not None:
        say(id=number, error={"code": -32601, "message": "no such method"})
