"""An MCP server that dies in a call costs the trial an attempt, and never becomes an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Project

# Dies in its first call, and serves from its second start on.
SERVER = '''
import os
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("fragile")


@server.tool()
def get_current_weather(city: str) -> str:
    """Get the current weather in a city."""
    if not Path("died").exists():
        Path("died").touch()
        os._exit(7)
    return f"It is 3 degrees in {city} with light rain."


server.run("stdio")
'''


@pytest.mark.parametrize("agent", ["gadk", "ms", "openai", "anthropic"])
@pytest.mark.parametrize("tap", ["true", "false"])
def test_a_server_that_dies_in_a_call_costs_one_attempt(weather: Callable[..., Project], agent: str, tap: str) -> None:
    project = weather(
        ("gadk: ", f"{agent}: "),
        ("weather: {}", f"weather: {{type: stdio, command: python, args: [server.py], cwd: ., tap: {tap}}}"),
    )
    (project.root / "server.py").write_text(SERVER, encoding="utf-8")
    flags = ["--condition", "with_weather", "--sample-id", "helsinki-now", "--sample-id", "lodz-now", "-j", "1"]

    outcome = project.spawn("run", "eval.yaml", *flags)

    first, second = project.lines("trials.jsonl")
    assert (0, None, None) == (outcome.code, first["failure"], second["failure"])
    assert [("mcp", "server_lost")] == [
        (attempt["failure"]["stage"], attempt["failure"]["kind"]) for attempt in first["attempts"]
    ]
    assert [] == second["attempts"]
    assert ["It is 3 degrees in Helsinki with light rain."] == [
        call["result"].removeprefix('{"result": "').removesuffix('"}') for call in first["transcript"]["tool_calls"]
    ]
