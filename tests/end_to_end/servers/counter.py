"""An MCP server over stdio that counts, and so remembers what an earlier trial did with it.

`python -m ….counter [--read-only] [FILE]` says that it changes nothing, though it does; and whether FILE was there when
it started.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

from tests.stdio_server import Content, Tool, serve, text

READ_ONLY = "--read-only" in sys.argv
FILES = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("--")]

numbers = itertools.count(1)
found = all(file.exists() for file in FILES)


def count(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    return text(str(next(numbers)))


def begun(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    told = sorted(name for name in os.environ if name.startswith("KEVAL_"))
    Path("note").touch()
    return text(f"{found} {told} {sorted(path.name for path in Path().iterdir())}")


if __name__ == "__main__":
    hints = {"readOnlyHint": True} if READ_ONLY else None
    tools = {
        "count": Tool(count, description="Counts its calls.", annotations=hints),
        "begun": Tool(begun, description="Tells how the server began.", annotations=hints),
    }
    serve("counter", lambda: tools)
