"""A server over stdio that adds and divides; it writes down each of its processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.stdio_server import Tool, ToolFailedError, serve, text

READS = {"readOnlyHint": True}
NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}


def divide(arguments: dict[str, Any], meta: dict[str, Any]) -> list[dict[str, Any]]:
    if arguments["b"] == 0:
        raise ToolFailedError("nothing can be divided by zero")
    return text(str(arguments["a"] // arguments["b"]))


TOOLS = {
    "add": Tool(
        lambda given, meta: text(str(given["a"] + given["b"])), NUMBERS, ("a", "b"), "Add two whole numbers.", READS
    ),
    "divide": Tool(divide, NUMBERS, ("a", "b"), "Divide one whole number by another.", READS),
}

if __name__ == "__main__":
    with Path(sys.argv[1]).open("a", encoding="utf-8") as journal:
        journal.write(f"{os.getpid()}\n")
    serve("desk", lambda: TOOLS)
