"""The sessions of an adapter that calls the tools itself: behind the tap, and directly over every transport."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import attrs
import pytest

from keval import Sample
from keval.plugin import McpServer, ServerLostError, ToolsMissingError
from keval_mcp.loop import Sessions, open_sessions
from tests.contexts import started


@pytest.fixture
def use(sample: Sample) -> Callable[..., Any]:
    """Open sessions as a trial would, and use them: `use(body, provider, ..., tools=...)`."""

    async def scenario(body: Callable[[Sessions], Awaitable[Any]], providers: Any, fields: Any) -> Any:
        async with AsyncExitStack() as stack:
            servers: list[McpServer] = []
            for number, provider in enumerate(providers):
                source = await stack.enter_async_context(started(provider, f"server{number}"))
                context = await stack.enter_async_context(source.open(sample, "t"))
                servers += [attrs.evolve(server, **fields) for server in context.servers]
            async with open_sessions(servers) as sessions:
                return await body(sessions)

    return lambda body, *providers, **fields: asyncio.run(asyncio.wait_for(scenario(body, providers, fields), 30))


def caller(name: str, **arguments: Any) -> Callable[[Sessions], Awaitable[Any]]:
    async def body(sessions: Sessions) -> tuple[str, bool]:
        (tool,) = (tool for tool in sessions.tools if tool.name == name)
        outcome = await sessions.call(tool, arguments)
        return outcome.text, outcome.is_error

    return body


@pytest.fixture(
    params=["http tapped", "http direct", "sse direct", pytest.param("stdio direct", marks=pytest.mark.slow)]
)
def provider(request: pytest.FixtureRequest) -> Any:
    """A server that can do everything, over each of the ways to it; behind the tap they are all alike."""
    transport, way = request.param.split()
    if transport == "stdio":
        return request.getfixturevalue("everything")(tap=way == "tapped")
    from keval_mcp import Http, Sse

    kind = Http if transport == "http" else Sse
    return kind(url=request.getfixturevalue(f"lasting_{transport}"), tap=way == "tapped")


def test_tools_are_listed_and_called(use: Any, provider: Any) -> None:
    async def body(sessions: Sessions) -> Any:
        echo = next(tool for tool in sessions.tools if tool.name == "echo")
        told = await sessions.call(echo, {"text": "żółć", "times": 2})
        failed = await caller("fail")(sessions)
        return echo, told.text, failed

    echo, told, failed = use(body, provider)

    assert (echo.server, echo.alias, echo.description) == ("server0", "echo", "Say it again. Żółć ☂.")
    assert echo.input_schema["required"] == ["text"]
    assert (told, failed) == ("żółćżółć", ("Error executing tool fail: the tool has failed", True))


def test_a_server_behind_the_tap_is_reached_without_http(use: Any, lasting: Any) -> None:
    async def body(sessions: Sessions) -> Any:
        return await caller("echo", text="near")(sessions)

    assert use(body, lasting(), url="http://127.0.0.1:9/nobody") == ("near", False)


def test_many_calls_are_under_way_at_once(use: Any, lasting: Any) -> None:
    async def body(sessions: Sessions) -> list[Any]:
        return list(await asyncio.gather(*(caller("echo", text=str(n))(sessions) for n in range(50))))

    assert use(body, lasting()) == [(str(n), False) for n in range(50)]


def test_a_refused_call_and_one_that_brings_nonsense_are_errors_of_the_tool(use: Any, server: Any) -> None:
    async def body(sessions: Sessions) -> list[Any]:
        nonsense = await sessions.call(attrs.evolve(sessions.tools[0], name="nonsense"), {})
        return [await caller("refuse")(sessions), await caller("data")(sessions), nonsense]

    refused, data, nonsense = use(body, server("plain", tap=False))

    assert refused == ("there is no such city", True)
    assert data == ('{"temperature": -3, "wind": null}', False)
    assert (nonsense.is_error, nonsense.text.split(":")[0]) == (True, "what came is not the result of a tool call")


@pytest.mark.parametrize("tap", [True, False])
def test_a_server_that_dies_during_a_call_is_lost_with_its_last_words(use: Any, bare: Any, tap: bool) -> None:
    with pytest.raises(ServerLostError, match=r"(?s)was lost during 'die'.*dying now"):
        use(caller("die"), bare(tap=tap))


@pytest.mark.slow
@pytest.mark.parametrize("tap", [True, False])
def test_a_call_over_its_time_is_an_error_and_the_next_one_is_answered(use: Any, bare: Any, tap: bool) -> None:
    async def body(sessions: Sessions) -> Any:
        return await caller("hang")(sessions), await caller("echo", text="fine")(sessions)

    (problem, is_error), after = use(body, bare(tap=tap, timeout=0.5))

    assert problem.endswith("did not answer 'hang' within 0.5 s")
    assert (True, ("fine", False)) == (is_error, after)


def test_a_server_that_was_lost_before_a_call_is_lost(use: Any, bare: Any) -> None:
    async def body(sessions: Sessions) -> Any:
        with pytest.raises(ServerLostError):
            await caller("die")(sessions)
        return await caller("echo", text="still there?")(sessions)

    with pytest.raises(ServerLostError, match="was lost during 'echo'"):
        use(body, bare(tap=False))


@pytest.mark.parametrize(
    ("tools", "message"), [(("echo", "rain"), "without rain and with babble, die"), (("echo",), "with babble, die")]
)
def test_other_tools_than_listed_are_refused(use: Any, bare: Any, tools: Any, message: str) -> None:
    with pytest.raises(ToolsMissingError, match=message):
        use(caller("echo"), bare(), tools=tools)


def test_a_server_that_is_not_there_is_lost() -> None:
    async def scenario() -> None:
        async with open_sessions([McpServer("gone", "http", "http://127.0.0.1:9/mcp")]):
            pytest.fail("there is no such server")

    with pytest.raises(ServerLostError, match=r"server 'gone' at http://127\.0\.0\.1:9/mcp did not come up"):
        asyncio.run(scenario())


def test_names_that_no_model_takes_get_an_alias_of_their_own(use: Any, server: Any) -> None:
    async def body(sessions: Sessions) -> list[str]:
        return [tool.alias for tool in sessions.tools]

    aliases = use(body, server("meeting"))

    assert aliases == ["wait_here", "wait_here_2", "x" * 64, f"{'x' * 62}_2"]


def test_a_tool_of_a_name_that_two_servers_have_is_called_where_it_is(use: Any, bare: Any) -> None:
    async def body(sessions: Sessions) -> Any:
        pids = [tool for tool in sessions.tools if tool.name == "pid"]
        return [(tool.server, tool.alias, (await sessions.call(tool, {})).text) for tool in pids]

    first, second = use(body, bare(tap=False), bare(tap=False))

    assert [first[:2], second[:2]] == [("server0", "pid"), ("server1", "pid_2")]
    assert first[2] != second[2]


def test_a_trial_cancelled_during_a_call_leaves_no_process_and_no_task(
    bare: Any, sample: Sample, doorbell: Any
) -> None:
    async def trial(server: McpServer, port: int, pids: list[str]) -> None:
        async with open_sessions([server]) as sessions:
            pids.append((await caller("pid")(sessions))[0])
            await caller("hang", port=port)(sessions)

    async def scenario() -> Any:
        pids: list[str] = []
        async with doorbell() as bell, started(bare(tap=False), "bare") as source, source.open(sample, "t") as context:
            before = asyncio.all_tasks()
            running = asyncio.create_task(trial(context.servers[0], bell.port, pids))
            await bell.hung_up.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return asyncio.all_tasks() - before, pids

    left, (pid,) = asyncio.run(asyncio.wait_for(scenario(), 30))

    assert left == set()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
