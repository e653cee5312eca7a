"""An MCP server whose tool returns as many characters as the file `size` says; `python -m … FOLDER`."""

import sys
from pathlib import Path
from typing import Any

from tests.stdio_server import Tool, serve, text


def weather(arguments: dict[str, Any], meta: dict[str, Any]) -> list[dict[str, Any]]:
    return text("x" * int(Path(sys.argv[1], "size").read_text(encoding="ascii")))


tool = Tool(weather, {"city": {"type": "string"}}, ("city",), "Get the current weather in a city.")
serve("bulky", lambda: {"get_current_weather": tool})
