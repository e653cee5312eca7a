"""A server written without the SDK, in the older protocol, which starts at once and can be made to go wrong.

`python bare.py [FILE]` counts its starts in FILE and describes its tools by the count.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = ("echo", "pid", "told", "quit", "die", "hang", "work", "babble")


def call(name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> str | None:
    """Return the text that answers a call, or nothing for a call that is never answered."""
    match name:
        case "echo":
            return str(arguments["text"])
        case "pid" | "quit":
            return str(os.getpid())
        case "told":
            environment = {key: value for key, value in os.environ.items() if key.startswith("KEVAL_")}
            return json.dumps({"meta": meta, "environment": environment})
        case "work":
            for step in range(round(arguments["seconds"] / 0.1)):
                time.sleep(0.1)
                if "progressToken" in meta:
                    notify("notifications/progress", progressToken=meta["progressToken"], progress=step)
            return "done"
        case "die":
            sys.stderr.write("dying now\n")
            sys.stderr.flush()
            os._exit(3)
        case "babble":
            sys.stdout.write("Welcome!\n")
            sys.stdout.flush()
        case "hang":
            if "port" in arguments:
                socket.create_connection(("127.0.0.1", arguments["port"])).close()
            if arguments.get("everything"):
                time.sleep(60)
    return None


def notify(method: str, **params: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n")
    sys.stdout.flush()


def count_start() -> int:
    if len(sys.argv) < 2:
        return 0
    with Path(sys.argv[1]).open("a", encoding="utf-8") as starts:
        starts.write("x")
        return starts.tell()


def answer(method: str, params: dict[str, Any], start: int) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "bare", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            common = {"description": f"Start {start}", "inputSchema": {"type": "object"}}
            return {"tools": [{"name": name, **common} for name in TOOLS]}
        case "tools/call":
            text = call(params["name"], params.get("arguments", {}), params.get("_meta", {}))
            return None if text is None else {"content": [{"type": "text", "text": text}]}
    raise LookupError(method)


def main() -> None:
    start = count_start()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = answer(message["method"], message.get("params", {}), start)
        except LookupError as error:
            reply["error"] = {"code": -32601, "message": f"no such method: {error}"}
        else:
            if result is None:
                continue
            reply["result"] = result
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
        if message.get("params", {}).get("name") == "quit":
            return


if __name__ == "__main__":
    main()
