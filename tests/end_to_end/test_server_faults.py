"""An MCP server that dies in a call costs the trial an attempt, and never becomes an answer.

What each agent makes of a lost server is in `test_tool_calls.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

# Dies in its first call, and serves from its second start on.
SERVER = """
import os
from pathlib import Path

from tests.stdio_server import Tool, serve, text


def tell(arguments, meta):
    if not Path("died").exists():
        Path("died").touch()
        os._exit(7)
    return text(f"It is 3 degrees in {arguments['city']} with light rain.")


weather = Tool(tell, {"city": {"type": "string"}}, ("city",), "Get the current weather in a city.")
serve("fragile", lambda: {"get_current_weather": weather})
"""


@pytest.mark.parametrize("tap", ["true", "false"])
def test_a_server_that_dies_in_a_call_costs_one_attempt(weather: Callable[..., Project], tap: str) -> None:
    environment = json.dumps(ENVIRONMENT)
    server = f"{{type: stdio, command: python, args: [server.py], cwd: ., env: {environment}, tap: {tap}}}"
    project = weather(("gadk: ", "openai: "), ("weather: {}", f"weather: {server}"))
    (project.root / "server.py").write_text(SERVER, encoding="utf-8")
    flags = ["--condition", "with_weather", "--sample-id", "helsinki-now", "--sample-id", "lodz-now", "-j", "1"]

    outcome = project.run("eval.yaml", *flags)

    first, second = project.lines("trials.jsonl")
    assert (0, None, None) == (outcome.code, first["failure"], second["failure"])
    assert [("mcp", "server_lost")] == [
        (attempt["failure"]["stage"], attempt["failure"]["kind"]) for attempt in first["attempts"]
    ]
    assert [] == second["attempts"]
    assert ["It is 3 degrees in Helsinki with light rain."] == [
        call["result"] for call in first["transcript"]["tool_calls"]
    ]
