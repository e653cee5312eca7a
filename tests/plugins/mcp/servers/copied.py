"""A server that says what it finds: how it was started, what it remembers, and what importing its packages has left.

It runs as a file, as a module, as code, and by the script of a package, and uses what a test installs beside it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import threading
from pathlib import Path
from typing import Any

from tests.stdio_server import Content, Tool, serve, text

SIGNALS = ("SigBlk", "SigIgn", "SigCgt")

numbers = itertools.count(1)


def count(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    return text(str(next(numbers)))


def begun(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    main = sys.modules["__main__"]
    told = {
        "arguments": [sys.argv, sys.orig_argv[1:], getattr(main, "__file__", None), main.__name__],
        "environment": {**os.environ},
        "folder": os.getcwd(),
        "path": sys.path,
        "pipes": [os.readlink(f"/proc/self/fd/{number}").partition(":")[0] for number in range(3)],
        "streams": [sys.stdin.encoding, sys.stdout.encoding, sys.stdout.line_buffering, sys.stdout.isatty()],
        "leads": os.getpgid(0) == os.getpid(),
        "signals": [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(SIGNALS)],
    }
    return text(json.dumps(told))


def draw(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    return text(str(random.random()))


def seeds(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    return text(str(len(sys.modules["numpy.random"].seeds)))


def threads(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    return text(str(sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("left"))))


def die(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    sys.stderr.write("dying now\n")
    sys.stderr.flush()
    os._exit(3)


def main() -> None:
    tools = (count, begun, draw, seeds, threads, die)
    serve("copied", lambda: {tool.__name__: Tool(tool) for tool in tools})
