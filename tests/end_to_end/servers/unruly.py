"""An MCP server that does not want to end; `python -m … WAY FILE`. All that it starts has FILE in its command line.

WAY is `deaf`: it ignores signals and the end of its input. `daemon`: a helper of it leaves its session and its parent
and forgets its environment. `hangs`: it ignores signals, writes FILE when it is called, never
answers, and ignores the end of its input from then on. `plain`: none of it.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.stdio_server import NoAnswerError, Tool, serve, text

WAY, FILE = sys.argv[1:]
DEAF = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(3600)"


def weather(arguments: dict[str, Any], meta: dict[str, Any]) -> list[dict[str, Any]]:
    if WAY == "hangs":
        Path(FILE).touch()
        raise NoAnswerError
    return text(f"It is 3 degrees in {arguments['city']}.")


def start_daemon() -> None:
    if os.fork():
        return
    os.setsid()
    if not os.fork():
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        os.execve(sys.executable, [sys.executable, "-c", DEAF, FILE], {})
    os._exit(0)


if WAY == "daemon":
    start_daemon()
if WAY in ("deaf", "hangs"):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
tool = Tool(weather, {"city": {"type": "string"}}, ("city",), "Get the current weather in a city.")
serve(WAY, lambda: {"get_current_weather": tool})
while WAY == "deaf" or Path(FILE).exists():
    time.sleep(3600)
