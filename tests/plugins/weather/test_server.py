"""The real server, as a process, driven by the real client over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

MODULE = ["-m", "keval_weather.server"]
TOOLS = ["get_current_weather", "get_user_preferences", "get_weather_forecast", "update_user_preferences_from_insight"]
FLAGS = ["dislikes_cold", "dislikes_heat", "dislikes_rain", "dislikes_wind", "outdoor_activities", "prefers_indoor"]
FLAGS += ["prefers_sunny", "sensitive_to_weather"]


@asynccontextmanager
async def _stdio(env: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=MODULE, env=dict(env or {}))
    async with Client(parameters) as client:
        yield client


@asynccontextmanager
async def _http(url: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    async with (
        create_mcp_http_client(headers=dict(headers or {})) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve over HTTP for all the tests of this module."""
    with _started() as process:
        yield f"http://127.0.0.1:{_port(process)}/mcp"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def _started(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, *MODULE, "--transport", "http", "--path", "/mcp", "--exit-with-stdin", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})


def _port(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    port = json.loads(process.stdout.readline())["port"]
    assert isinstance(port, int)
    return port


async def _call(client: Client, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None) -> Any:
    result = await client.call_tool(tool, dict(arguments), meta=dict(meta) if meta else None)  # type: ignore[arg-type]
    assert not result.is_error, result.content
    return result.structured_content


async def _error(client: Client, tool: str, arguments: Mapping[str, Any]) -> str:
    result = await client.call_tool(tool, dict(arguments))
    assert result.is_error
    return " ".join(part.text for part in result.content if part.type == "text")


def _trial(name: str, preferences: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"keval/trial": name, "keval/attempt": "1", "keval/preferences": dict(preferences or {})}


async def _weather(client: Client) -> None:
    """What must hold on every transport."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == TOOLS
    assert {"city", "days"} == set(tools["get_weather_forecast"].input_schema["properties"])
    update = tools["update_user_preferences_from_insight"].input_schema
    assert ["insight_text", "user_id", *FLAGS] == sorted(update["properties"], key=lambda name: (name in FLAGS, name))
    assert update["required"] == ["user_id"]
    assert all(tool.output_schema and tool.description for tool in tools.values())

    current = await _call(client, "get_current_weather", {"city": "sao paulo"})
    assert ("São Paulo", 27.4, "Thunderstorm", "metric") == (
        *(current[name] for name in ("city", "temperature", "main_condition", "units")),
    )
    forecast = await _call(client, "get_weather_forecast", {"city": "Lodz", "days": 1})
    assert ("Łódź", [("2026-01-15", -7.9, -3.6)]) == (
        forecast["city"],
        [(day["date"], day["min_temp"], day["max_temp"]) for day in forecast["days"]],
    )


@pytest.mark.slow
def test_over_stdio_it_tells_the_weather_and_the_environment_names_the_trial() -> None:
    environment = {"KEVAL_TRIAL": "t", "KEVAL_PREFERENCES": '{"dislikes_wind": true}'}

    async def check() -> Any:
        async with _stdio(environment) as client:
            await _weather(client)
            return await _call(client, "get_user_preferences", {"user_id": "u"})

    assert asyncio.run(check())["preferences"] == {"dislikes_wind": True}


def test_it_tells_the_weather_over_http(url: str) -> None:
    async def check() -> None:
        async with _http(url) as client:
            await _weather(client)

    asyncio.run(check())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_old_and_new_clients_are_served(url: str, mode: str) -> None:
    async def check() -> Any:
        async with Client(url, mode=mode) as client:
            return await _call(client, "get_current_weather", {"city": "Oslo"}, _trial(mode))

    assert asyncio.run(check())["temperature"] == -4.6


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("get_current_weather", {"city": "Atlantis"}, "no city named 'Atlantis' is known"),
        ("get_weather_forecast", {"city": "Atlantis", "days": 2}, "such as Helsinki, New York"),
        ("get_weather_forecast", {"city": "Oslo", "days": 30}, "a forecast covers 1 to 5 days, not 30"),
        ("get_weather_forecast", {"city": "Oslo", "days": 0}, "a forecast covers 1 to 5 days, not 0"),
        ("update_user_preferences_from_insight", {"user_id": "u"}, "there is nothing to remember"),
        ("get_current_weather", {}, "city"),
    ],
)
def test_what_cannot_be_done_is_a_tool_error_that_says_why(
    url: str, tool: str, arguments: dict[str, Any], message: str
) -> None:
    async def check() -> str:
        async with _http(url) as client:
            return await _error(client, tool, arguments)

    assert message in asyncio.run(check())


def test_trials_that_share_a_server_never_see_each_others_state(url: str) -> None:
    async def check() -> None:
        async with _http(url) as client:
            a, b = _trial("a", {"dislikes_rain": True}), _trial("b")
            insight = {"user_id": "u", "insight_text": "hates the cold", "dislikes_cold": True}
            learned = await _call(client, "update_user_preferences_from_insight", insight, a)

            preferences = {"dislikes_rain": True, "dislikes_cold": True}
            expected = {"user_id": "u", "preferences": preferences, "insights": ["hates the cold"]}
            nothing: dict[str, Any] = {"user_id": "u", "preferences": {}, "insights": []}
            assert expected == learned
            assert expected == await _call(client, "get_user_preferences", {"user_id": "u"}, a)
            assert nothing == await _call(client, "get_user_preferences", {"user_id": "u"}, b)
            assert nothing == await _call(client, "get_user_preferences", {"user_id": "u"})
            retried = {**a, "keval/attempt": "2"}
            assert {**nothing, "preferences": {"dislikes_rain": True}} == await _call(
                client, "get_user_preferences", {"user_id": "u"}, retried
            )

    asyncio.run(check())


@pytest.mark.slow
def test_an_interrupt_ends_it_quietly() -> None:
    with _started() as process:
        _port(process)
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=20) == 0


def test_a_port_that_is_taken_is_named(url: str) -> None:
    taken = url.removesuffix("/mcp").rpartition(":")[2]
    command = [sys.executable, *MODULE, "--transport", "http", "--port", taken]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20)

    assert ended.returncode == 2
    assert f"port {taken} cannot be used" in ended.stderr
    assert ended.stdout == ""


def test_its_process_imports_nothing_of_the_context() -> None:
    code = "import sys, keval_weather.server; print('keval_weather.context' in sys.modules)"

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "False" == shown.strip()
