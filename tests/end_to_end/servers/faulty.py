"""An MCP server that goes wrong in WAY when it is called for Helsinki, once; `python -m … WAY FOLDER`."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.stdio_server import NoAnswerError, Tool, serve, text

WAY, FOLDER = sys.argv[1], Path(sys.argv[2])
MEGABYTE = b"no message at all\n" * 60_000


def write(descriptor: int, megabytes: int) -> None:
    for _ in range(megabytes):
        rest = memoryview(MEGABYTE)
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def weather(arguments: dict[str, Any], meta: dict[str, Any]) -> list[dict[str, Any]]:
    answer = f"It is 3 degrees in {arguments['city']} with light rain."
    if arguments["city"] != "Helsinki" or (FOLDER / "done").exists():
        return text(answer)
    (FOLDER / "done").touch()
    match WAY:
        case "dies":
            os._exit(7)
        case "hangs":
            raise NoAnswerError
        case "large":
            answer = "x" * 3_000_000
        case "floods-stdout":
            write(1, 10)
        case "floods-stderr":
            write(2, 50)
        case "endless-line":
            for _ in range(5):
                os.write(1, b"x" * 10**6)
            raise NoAnswerError
        case "not-utf-8":
            os.write(1, b"\xff\xfe\x00\x80\n")
    return text(answer)


if WAY == "slow":
    time.sleep(60)
tool = Tool(weather, {"city": {"type": "string"}}, ("city",), "Get the current weather in a city.")
serve("faulty", lambda: {"get_current_weather": tool})
