"""Tools that change during a trial: it fails and says so, follows them, or keeps the first list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ToolListChangedNotification

from keval import Sample
from keval.errors import ServerLostError
from keval.records.servers import CallLog
from keval_mcp import Stdio
from tests.contexts import started
from tests.stdio_server import ENVIRONMENT

CHANGED = "server 'every' has other tools than before the first trial: with enter; keep its tools as they are"


@pytest.fixture
def changing(server: Callable[..., Stdio]) -> Callable[..., Stdio]:
    """Describe the server whose tools change."""
    return lambda *args, **options: server("changing", *args, **options)


@pytest.mark.parametrize("how", ["unlock", "unlock_silently"])
def test_trial_whose_tools_changed_proves_nothing(
    changing: Callable[..., Stdio], outcomes: Callable[..., Any], how: str
) -> None:
    (_, first), (_, second) = outcomes(changing(), [(how, {})], [(how, {})])

    assert [True, True] == [str(log.contaminated).startswith(CHANGED) for log in (first, second)]
    assert (None, None) == (first.lost, second.lost)


def test_trial_that_shares_a_server_whose_tools_changed_before_proves_nothing(
    changing: Callable[..., Stdio], outcomes: Callable[..., Any]
) -> None:
    (_, first), (_, second) = outcomes(changing(isolation="condition"), [("unlock", {})], [])

    assert [True, True] == [str(log.contaminated).startswith(CHANGED) for log in (first, second)]


def test_list_that_is_frozen_stays(changing: Callable[..., Stdio], sample: Sample) -> None:
    async def run() -> tuple[list[str], CallLog, Any]:
        async with (
            started(changing(dynamic_tools="freeze"), "every") as source,
            source.open(sample, "t") as context,
        ):
            (server,) = context.servers
            assert server.channel is not None
            assert server.log is not None
            await server.channel.call_tool("unlock", {})
            offered = [tool["name"] for tool in await server.channel.list_tools()]
            return offered, server.log, await server.channel.call_tool("enter", {})

    offered, log, entered = asyncio.run(run())

    assert ["unlock", "unlock_silently"] == offered
    assert "inside" == entered["content"][0]["text"]
    assert (None, [None, None]) == (log.contaminated, [call.listing for call in log.calls])


def test_call_that_changes_the_tools_ends_when_they_have_been_read(
    changing: Callable[..., Stdio], sample: Sample
) -> None:
    async def run() -> list[tuple[str, ...]]:
        async with (
            started(changing("0.2", dynamic_tools="follow"), "every") as source,
            source.open(sample, "t") as context,
        ):
            (server,) = context.servers
            assert server.channel is not None
            assert server.log is not None
            await server.channel.call_tool("unlock", {})
            return [*server.log.followed]

    assert [("unlock", "unlock_silently", "enter")] == asyncio.run(run())


def test_client_that_listens_follows_the_tools(
    changing: Callable[..., Stdio], sample: Sample, text: Callable[..., str]
) -> None:
    async def run() -> tuple[list[list[str]], str, CallLog, tuple[str, ...]]:
        async with (
            started(changing(dynamic_tools="follow"), "every") as source,
            source.open(sample, "t") as context,
        ):
            (server,) = context.servers
            assert server.url is not None
            assert server.log is not None
            heard = asyncio.Event()

            async def hear(message: Any) -> None:
                if isinstance(message, ToolListChangedNotification):
                    heard.set()

            async with (
                httpx2.AsyncClient(verify=False, timeout=60) as http,
                Client(streamable_http_client(server.url, http_client=http), message_handler=hear) as client,
            ):
                lists = [[tool.name for tool in (await client.list_tools()).tools]]
                await client.call_tool("unlock", {})
                await heard.wait()
                lists.append([tool.name for tool in (await client.list_tools()).tools])
                said = await client.call_tool("enter", {})
            return lists, text(said), server.log, server.tools

    lists, said, log, tools = asyncio.run(run())

    assert [["unlock", "unlock_silently"], ["unlock", "unlock_silently", "enter"]] == lists
    assert ("inside", None) == (said, log.contaminated)
    assert [tuple(lists[1])] == log.followed
    (blob,) = log.blobs
    assert [None, blob.sha256] == [call.listing for call in log.calls]
    assert lists[1] == [tool["name"] for tool in json.loads(blob.content)["tools"]]
    assert ("unlock", "unlock_silently") == tools


SET = """
from tests.stdio_server import Tool, serve, text
cities = {"Kraków", "Żory", "Łódź", "Opole", "Toruń", "Gdynia", "Sopot", "Rybnik", "Tychy", "Zabrze"}
tool = Tool(lambda arguments, meta: text("fine"), description=f"Takes one of {cities}.")
serve("cities", lambda: {"look": tool})
"""


def test_server_that_prints_a_set_is_told_of_its_remedy_which_works(
    attempt: Callable[..., Any], outcomes: Callable[..., Any]
) -> None:
    def cities(**variables: str) -> Stdio:
        environment = {**ENVIRONMENT, **variables}
        return Stdio(command="python", args=("-c", SET), env=environment, isolation="trial")

    async def lose() -> str:
        # The first attempt has the process that was connected to first.
        async with started(cities(), "cities") as source, attempt(source), attempt(source, "second"):
            raise AssertionError

    with pytest.raises(ServerLostError) as lost:
        asyncio.run(lose())
    (((said,), log), (again, _)) = outcomes(cities(PYTHONHASHSEED="0"), [("look", {})], [("look", {})])

    assert "than at the start of the run: with another description of 'look' (" in str(lost.value)
    assert 'set PYTHONHASHSEED for it (`env: {PYTHONHASHSEED: "0"}`); keep it unchanged' in str(lost.value)
    assert ("fine", None, ["fine"]) == (said, log.lost, again)


@pytest.mark.parametrize(("how", "listed"), [("freeze", False), ("follow", True)])
def test_server_that_comes_back_with_other_tools_is_taken_where_the_config_says_so(
    server: Callable[..., Stdio], attempt: Callable[..., Any], tmp_path: Path, how: str, listed: bool
) -> None:
    async def run() -> CallLog:
        options = {"dynamic_tools": how, "isolation": "condition"}
        async with started(server("bare", str(tmp_path / "starts"), **options), "bare") as source:
            async with attempt(source) as first:
                await first.call("die")
            async with attempt(source) as second:
                await second.call("pid")
                log: CallLog = second.log
                return log

    log = asyncio.run(run())

    assert (None, None) == (log.lost, log.contaminated)
    assert [listed] == [call.listing is not None for call in log.calls]
