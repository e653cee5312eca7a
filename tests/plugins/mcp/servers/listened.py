"""A server of the revision 2026-07-28 that tells who listens for it that its tools change: `unlock` adds `enter`.

`drop` ends the listening, and `touch` changes the resource `note://a`. Each result says how many listen.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

PREFIX = "io.modelcontextprotocol/"
tools = ["unlock", "drop", "touch"]
listening: dict[Any, dict[str, Any]] = {}


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def stamped(number: Any, **more: Any) -> dict[str, Any]:
    return {**more, "_meta": {PREFIX + "subscriptionId": number}}


def tell(method: str, asked: str, **params: Any) -> None:
    for number, wanted in listening.items():
        if wanted.get(asked):
            say(method=f"notifications/{method}", params=stamped(number, **params))


def call(name: str) -> dict[str, Any]:
    count = len(listening)
    if name == "unlock":
        tools.append("enter")
        tell("tools/list_changed", "toolsListChanged")
    elif name == "drop":
        while listening:
            number, _ = listening.popitem()
            say(id=number, result=stamped(number))
    elif name == "touch":
        tell("resources/updated", "resourceSubscriptions", uri="note://a")
    return {"content": [{"type": "text", "text": f"{count} listening"}]}


for line in sys.stdin:
    message = json.loads(line)
    params, number = message.get("params", {}), message.get("id")
    result: dict[str, Any] | None = None
    match message["method"]:
        case "server/discover":
            can = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
            result = {"supportedVersions": ["2026-07-28"], "capabilities": can}
        case "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
        case "tools/call":
            result = call(params["name"])
        case "subscriptions/listen":
            listening[number] = params["notifications"]
            told = stamped(number, notifications=params["notifications"])
            say(method="notifications/subscriptions/acknowledged", params=told)
            continue
        case "notifications/cancelled":
            listening.pop(params["requestId"], None)
    if result is not None:
        say(id=number, result={"resultType": "complete", **result})
    elif number is not None:
        say(id=number, error={"code": -32601, "message": "no such method"})
