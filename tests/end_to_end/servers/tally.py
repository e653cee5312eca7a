"""An MCP server that keeps a journal of every call it executes, one JSON line each, to hold transcripts against.

`python -m ….tally JOURNAL` serves over stdio, and is up at once; `tally_http.py` beside it serves over HTTP.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.stdio_server import Content, RefusedError, Tool, ToolFailedError, serve, text

__all__ = ["TOOLS", "Call", "tell"]

TOGETHER_SECONDS = 20.0

TEXT = {"type": "string"}
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "look": ("Answers with the number of the call.", {"where": TEXT}),
    "pick": ("Takes any number but 13, which the server refuses.", {"number": {"type": "integer"}}),
    "fail": ("Answers with an error.", {}),
    "recover": ("Answers with an error, and when called again with a result.", {"where": TEXT}),
    "meet": ("Answers when two calls with the same key are under way.", {"key": TEXT}),
    "vanish": ("Meets another call; when a trial asks first, the session is lost instead of an answer.", {"key": TEXT}),
}

serials = itertools.count(1)
waiting: dict[tuple[str, str], threading.Barrier] = {}
noting = threading.Lock()


class Call(NamedTuple):
    """A call of a tool in an attempt at a trial."""

    trial: str
    attempt: str
    tool: str
    arguments: Mapping[str, Any]


def note(journal: Path, call: Call, serial: str) -> bool:
    """Write a call down, and return whether its trial had called the tool before, whatever process served it."""
    with noting, journal.open("a+", encoding="utf-8") as lines:
        lines.seek(0)
        earlier = [(line["trial"], line["tool"]) for line in map(json.loads, lines)]
        lines.write(json.dumps({**call._asdict(), "serial": serial}) + "\n")
    return (call.trial, call.tool) in earlier


def tell(journal: Path, call: Call, vanish: Callable[[], object]) -> str:
    """Execute a call and return the text that answers it.

    Raises:
        RefusedError: the parameters are wrong.
        ToolFailedError: the tool says so.
    """
    serial = f"{os.getpid()}.{next(serials)}"
    repeated = note(journal, call, serial)
    if missing := TOOLS[call.tool][1].keys() - call.arguments.keys():
        raise RefusedError(f"{call.tool} needs {', '.join(missing)}")
    if call.arguments.get("number") == 13:
        raise RefusedError("13 is no number to pick")
    if call.tool in ("meet", "vanish"):
        with noting:
            barrier = waiting.setdefault((call.attempt, call.arguments["key"]), threading.Barrier(2))
        barrier.wait(TOGETHER_SECONDS)
    if call.tool == "vanish" and not repeated:
        vanish()
    if call.tool == "fail" or (call.tool == "recover" and not repeated):
        raise ToolFailedError(serial)
    return serial


def _tool(name: str) -> Tool:
    def run(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
        trial, attempt = (meta.get(f"keval/{of}") or os.environ[f"KEVAL_{of.upper()}"] for of in ("trial", "attempt"))
        return text(tell(Path(sys.argv[1]), Call(trial, attempt, name, arguments), lambda: os._exit(3)))

    description, properties = TOOLS[name]
    return Tool(run, properties, tuple(properties), description)


if __name__ == "__main__":
    tools = {name: _tool(name) for name in TOOLS}
    serve("tally", lambda: tools)
