"""How a context's server becomes ADK's connection."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import attrs
import google.auth
import pytest
from google.adk.tools.mcp_tool import SseConnectionParams, StdioConnectionParams, StreamableHTTPConnectionParams

from keval.plugin import McpServer
from keval_gadk.toolset import TrialToolset, open_toolsets

STDIO = McpServer("w", "stdio", command="weather", args=("--all",), env={"KEY": "1"}, cwd="/tmp", timeout=33.0)
WEB = McpServer("w", "http", url="http://127.0.0.1:1/mcp", headers={"x-key": "1"}, timeout=33.0)


def _connection(server: McpServer, tmp_path: Path) -> Any:
    with (tmp_path / "stderr").open("a+", encoding="utf-8") as stderr:
        return TrialToolset(server, stderr).connection_params


def test_a_command_gets_what_the_context_says_and_time_for_its_calls(tmp_path: Path) -> None:
    connection = _connection(STDIO, tmp_path)

    assert isinstance(connection, StdioConnectionParams)
    command = connection.server_params
    assert (command.command, command.args, command.env, str(command.cwd)) == (
        "weather",
        ["--all"],
        {"KEY": "1"},
        "/tmp",
    )
    assert connection.timeout == 33.0  # over stdio ADK takes this for calls too, and 5 s if not told


@pytest.mark.parametrize(
    ("transport", "kind"), [("http", StreamableHTTPConnectionParams), ("sse", SseConnectionParams)]
)
def test_a_url_gets_its_headers_and_time_for_its_calls(
    tmp_path: Path, transport: Literal["http", "sse"], kind: type[Any]
) -> None:
    connection = _connection(attrs.evolve(WEB, transport=transport), tmp_path)

    assert isinstance(connection, kind)
    assert (connection.url, connection.headers) == (WEB.url, {"x-key": "1"})
    assert (connection.timeout, connection.sse_read_timeout) == (33.0, 33.0)


@pytest.mark.parametrize(("setting", "looked"), [(None, 0), ("false", 0), ("true", 1)])
def test_google_credentials_are_looked_for_only_where_the_user_asks(
    monkeypatch: pytest.MonkeyPatch, http_server: McpServer, setting: str | None, looked: int
) -> None:
    asked = []

    def default(**_: Any) -> Any:
        asked.append(1)
        raise OSError("none here")

    monkeypatch.setattr(google.auth, "default", default)
    monkeypatch.delenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", raising=False)
    if setting is not None:
        monkeypatch.setenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", setting)

    async def scenario() -> None:
        async with open_toolsets([http_server]) as (toolset,):
            assert toolset.loss is None

    asyncio.run(scenario())

    assert len(asked) == looked
