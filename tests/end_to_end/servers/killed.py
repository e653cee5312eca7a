"""An MCP server that Helsinki kills each time; `python -m … FOLDER CALLS`.

The first process answers no call before it has CALLS of them.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any

from tests.stdio_server import Tool, serve, text

STARTS, CALLS = Path(sys.argv[1]) / "starts", int(sys.argv[2])
together = threading.Barrier(CALLS)


def weather(arguments: dict[str, Any], meta: dict[str, Any]) -> list[dict[str, Any]]:
    if first:
        together.wait(30)
    if arguments["city"] == "Helsinki":
        os._exit(7)
    if first:
        threading.Event().wait()  # until it is killed
    return text(f"It is 3 degrees in {arguments['city']} with light rain.")


with STARTS.open("a+", encoding="utf-8") as file:
    file.write("start\n")
    file.flush()
    file.seek(0)
    first = len(file.readlines()) == 1
tool = Tool(weather, {"city": {"type": "string"}}, ("city",), "Get the current weather in a city.")
serve("killed", lambda: {"get_current_weather": tool})
