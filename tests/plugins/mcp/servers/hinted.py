"""An MCP server over stdio whose tools all say that they only read: `python -m ….hinted FILE TOOL…`.

A tool is one of `TOOLS`, or JSON: its input schema. With `alone`, no second process comes up. Every call is written
into FILE, with its process. `listen` serves tools over streamable HTTP.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.stdio_server import Content, RefusedError, ToolFailedError, answer_each, text

numbers = itertools.count(1)
cache: dict[str, str] = {}
chosen = {"city": "nowhere"}


def fail() -> Content:
    raise ToolFailedError("no such thing")


def refuse() -> Content:
    raise RefusedError("no such thing")


def end() -> Content:
    os._exit(3)


def slow() -> Content:
    time.sleep(60)
    return text("at last")


def choose() -> Content:
    chosen["city"] = "Oslo"
    return text("chosen")


def stamped() -> Content:
    return [{"type": "text", "text": "the same", "_meta": {"at": time.time()}}]


TOOLS: dict[str, Callable[[], Content]] = {
    "add": lambda: text("1 + 1 = 2"),
    "count": lambda: text(str(next(numbers))),
    "cached": lambda: text(cache.setdefault("answer", "It was slow to find.")),
    "now": lambda: text(str(time.time_ns())),
    "pid": lambda: text(str(os.getpid())),
    "choose": choose,
    "chosen": lambda: text(chosen["city"]),
    "stamped": stamped,
    "fail": fail,
    "refuse": refuse,
    "end": end,
    "slow": slow,
    "alone": lambda: text("I am alone"),
}
PLAIN = {"type": "object"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "tools/list":
        given = {name if name in TOOLS else f"tool_{number}": name for number, name in enumerate(sys.argv[2:])}
        schemas = {name: PLAIN if name in TOOLS else json.loads(told) for name, told in given.items()}
        hints = {"annotations": {"readOnlyHint": True}}
        return {"tools": [{"name": name, "inputSchema": schema, **hints} for name, schema in schemas.items()]}
    if method != "tools/call":
        raise LookupError(method)
    name = params["name"]
    with Path(sys.argv[1]).open("a", encoding="utf-8") as journal:
        journal.write(json.dumps([os.getpid(), name, params["arguments"]]) + "\n")
    try:
        content = TOOLS[name]() if name in TOOLS else text("the same")
    except ToolFailedError as failed:
        return {"content": text(str(failed)), "isError": True}
    return {"content": content, "_meta": {"at": time.time()}}


def _said(name: str) -> Callable[[], str]:
    return lambda: str(TOOLS[name]()[0]["text"])


def listen(listener: socket.socket, *names: str) -> None:
    """Serve tools over streamable HTTP; all sessions are with this process."""
    import uvicorn  # the SDK takes a second to import
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    server = MCPServer("hinted")
    for name in names:
        server.tool(name=name, annotations=ToolAnnotations(read_only_hint=True))(_said(name))
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if "alone" in sys.argv:
        try:
            Path(sys.argv[1]).with_name("lock").open("x", encoding="utf-8").close()
        except FileExistsError:
            sys.exit("another process has the lock")
    answer_each("hinted", answer)
