"""The toolbox over stdio, up at once: the tools of `toolbox.py` beside it, which is made with the SDK.

`mute` comes up, as far as the operating system can tell, and never says a word.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from tests.stdio_server import Content, NoAnswerError, Tool, ToolFailedError, serve, text

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["stdio", "mute"])
parser.add_argument("--journal", type=Path)
parser.add_argument("--beacon", type=int, help="a UDP port")
options = parser.parse_args()

Arguments = dict[str, Any]


def note(line: str) -> None:
    if options.journal:
        with options.journal.open("a", encoding="utf-8") as journal:
            journal.write(line + "\n")
    if options.beacon:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beacon:
            beacon.sendto(line.encode(), ("127.0.0.1", options.beacon))


def echo(arguments: Arguments, meta: Arguments) -> Content:
    note(f"echo {arguments['text']}")
    return text(arguments["text"])


def add(arguments: Arguments, meta: Arguments) -> Content:
    note(f"add {arguments['a']} {arguments['b']}")
    return text(str(arguments["a"] + arguments["b"]))


def fail(arguments: Arguments, meta: Arguments) -> Content:
    note("fail")
    raise ToolFailedError(arguments["text"])


def die(arguments: Arguments, meta: Arguments) -> Content:
    note("die")
    sys.stderr.write("toolbox: out of order\n")
    sys.stderr.flush()
    os._exit(3)


def hang(arguments: Arguments, meta: Arguments) -> Content:
    note("hang")
    raise NoAnswerError


def picture(arguments: Arguments, meta: Arguments) -> Content:
    return [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]


def where(arguments: Arguments, meta: Arguments) -> Content:
    return text(f"{Path.cwd()} {os.environ.get('KEVAL_TRIAL')}")


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TOOLS = {
    "echo": Tool(echo, {"text": TEXT, "options": TEXT}, ("text",)),
    "add": Tool(add, {"a": NUMBER, "b": NUMBER}, ("a", "b")),
    "fail": Tool(fail, {"text": TEXT}, ("text",)),
    "die": Tool(die),
    "hang": Tool(hang),
    "picture": Tool(picture),
    "where am i": Tool(where),
}


if __name__ == "__main__":
    note(f"pid {os.getpid()}")
    if options.transport == "mute":
        threading.Event().wait()
    serve("toolbox", lambda: TOOLS)
