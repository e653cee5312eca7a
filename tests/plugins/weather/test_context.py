"""The context on the real server: started, offered to trials behind the tap and without it, and ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from keval import Sample
from keval.plugin import McpServer, PreflightError, TrialInfo
from keval_testing import check_context
from keval_weather import Weather
from tests.contexts import Started, started

TOOLS = (
    "get_current_weather",
    "get_weather_forecast",
    "get_user_preferences",
    "update_user_preferences_from_insight",
)
COLD = Sample("cold", "?", facts={"preferences": {"dislikes_cold": True}})
PLAIN = Sample("plain", "?")
SLOW = pytest.mark.slow


@asynccontextmanager
async def _connected(server: McpServer) -> AsyncIterator[Client]:
    """Connect as an agent does, with nothing but what the context hands out."""
    if server.transport == "stdio":
        assert server.command is not None
        parameters = StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env))
        async with Client(parameters) as client:
            yield client
    else:
        assert server.url is not None
        async with (
            create_mcp_http_client(headers=dict(server.headers)) as http,
            Client(streamable_http_client(server.url, http_client=http)) as client,
        ):
            yield client


async def _preferences(client: Client, **learned: bool) -> Any:
    tool = "update_user_preferences_from_insight" if learned else "get_user_preferences"
    result = await client.call_tool(tool, {"user_id": "u", **learned})
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content["preferences"]


async def _trial(source: Started, sample: Sample, trial: str, **learned: bool) -> Any:
    async with source.open(sample, trial) as context, _connected(context.servers[0]) as client:
        if learned:
            await _preferences(client, **learned)
        return await _preferences(client)


@pytest.mark.slow
def test_it_keeps_the_rules_of_contexts() -> None:
    check_context("weather")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transport", "tap"),
    [("stdio", True), ("http", False), *(pytest.param(*way, marks=SLOW) for way in [("stdio", False), ("http", True)])],
)
def test_each_trial_begins_with_its_samples_preferences_and_keeps_its_own(
    transport: Literal["stdio", "http"], tap: bool
) -> None:
    async def check() -> None:
        async with started(Weather(transport=transport, tap=tap), "weather") as source:
            assert source.tool_listings[0].tools == TOOLS

            assert await _trial(source, COLD, "one", dislikes_rain=True) == {
                "dislikes_cold": True,
                "dislikes_rain": True,
            }
            assert await _trial(source, COLD, "two") == {"dislikes_cold": True}
            assert await _trial(source, PLAIN, "three") == {}
            # The same trial again is another attempt: what the failed one did is undone.
            assert await _trial(source, COLD, "one") == {"dislikes_cold": True}

    asyncio.run(check())


def test_trials_at_once_behind_the_tap_keep_apart() -> None:
    async def check() -> list[Any]:
        async with started(Weather(transport="http"), "weather") as source:
            trials = [
                _trial(source, COLD, "a", dislikes_rain=True),
                _trial(source, COLD, "b", dislikes_heat=True),
                _trial(source, PLAIN, "c", prefers_sunny=True),
                _trial(source, PLAIN, "d"),
            ]
            return list(await asyncio.gather(*trials))

    assert asyncio.run(check()) == [
        {"dislikes_cold": True, "dislikes_rain": True},
        {"dislikes_cold": True, "dislikes_heat": True},
        {"prefers_sunny": True},
        {},
    ]


@pytest.mark.slow
def test_a_server_per_trial_and_other_instructions_are_possible() -> None:
    async def check() -> tuple[Any, str]:
        async with started(Weather(isolation="trial", instructions="Be brief."), "weather") as source:
            found = await _trial(source, COLD, "one", dislikes_rain=True)
            async with source.source.open(TrialInfo("two", PLAIN, "agent", "condition")) as provision:
                return found, provision.instructions

    assert asyncio.run(check()) == ({"dislikes_cold": True, "dislikes_rain": True}, "Be brief.")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_server_is_given_nothing_of_value_and_ends_with_its_context(
    transport: Literal["stdio", "http"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "secret")

    async def check() -> tuple[Any, list[str]]:
        async with (
            started(Weather(transport=transport), "weather") as source,
            source.open(PLAIN, "t") as context,
            _connected(context.servers[0]) as client,
        ):
            result = await client.call_tool("get_current_weather", {"city": "Oslo"})
            return result.structured_content, [_environment(child) for child in _servers()]

    current, environments = asyncio.run(check())

    assert current["temperature"] == -4.6
    assert len(environments) == 1
    assert "OTHER_API_KEY" not in environments[0]
    assert _servers() == []


@pytest.mark.parametrize(
    ("code", "startup_timeout", "problem"),
    [
        ("raise SystemExit('no luck today')", 30.0, r"ended at its start; it said:\nno luck today"),
        ("import sys; sys.stdin.read()", 0.1, r"did not start within 0\.1 s; it said:\nnothing"),
    ],
)
def test_a_server_that_does_not_start_in_time_is_ended_and_quoted(
    code: str, startup_timeout: float, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keval_weather.context._MODULE", ("-c", code))

    async def start() -> None:
        async with started(Weather(transport="http", startup_timeout=startup_timeout), "sky"):
            pytest.fail("it cannot have started")

    with pytest.raises(PreflightError, match=f"server 'sky' {problem}"):
        asyncio.run(start())
    assert _servers() == []


def _servers() -> list[int]:
    """The weather servers that this process has started and not ended, from /proc."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return [int(child) for child in children if "keval_weather" in _command(child)]


def _command(process: str) -> str:
    return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8", errors="replace")


def _environment(process: int) -> str:
    return Path(f"/proc/{process}/environ").read_text(encoding="utf-8", errors="replace")
