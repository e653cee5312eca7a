"""The weather server over stdio, up at once; with `tides` it knows the tides instead, until it is told to forget them.

It has the tools of `weather.py` beside it, which is made with the SDK.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.stdio_server import Content, NoAnswerError, Tool, ToolFailedError, serve, text


def get_weather(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    return text(f"{arguments['city']}: 21 degrees, {arguments.get('units', 'metric')}")


def fail(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    raise ToolFailedError(arguments["reason"])


def process_id(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    return text(str(os.getpid()))


def hang(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    Path(arguments["path"]).write_text(str(os.getpid()), encoding="utf-8")
    raise NoAnswerError


def die(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    with Path(arguments["path"]).open("a", encoding="utf-8") as runs:
        runs.write("run\n")
    sys.stderr.write("the weather station caught fire\n")
    sys.stderr.flush()
    os._exit(3)


def forget_tides(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    del TIDES["get_tides"]
    return text("forgotten")


WEATHER = {
    "get_weather": Tool(get_weather),
    "get_slow_weather": Tool(get_weather),
    "fail": Tool(fail),
    "process_id": Tool(process_id),
    "hang": Tool(hang),
    "die": Tool(die),
}
TIDES = {
    "get_tides": Tool(lambda arguments, meta: text(f"{arguments['city']}: high")),
    "forget_tides": Tool(forget_tides),
}


if __name__ == "__main__":
    known = TIDES if sys.argv[1:] == ["tides"] else WEATHER
    serve("weather", lambda: known)
