"""A server that dies, hangs or changes fails the trials it touched, with the reason, and no others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval.plugin import ServerLostError
from keval.records.servers import CallLog
from keval_mcp import Http, Sse, Stdio
from tests.contexts import started
from tests.plugins.mcp.conftest import BARE


def test_server_that_dies_in_a_call_is_lost_and_started_again(
    bare: Callable[..., Stdio], outcomes: Callable[..., Any]
) -> None:
    first, second = outcomes(bare(), [("pid", {}), ("die", {}), ("pid", {})], [("pid", {}), ("echo", {"text": "x"})])
    (before, problem, after), log = first

    assert "server 'every' was lost during 'die': it closed the connection" == problem
    assert f"{problem}\nits standard error ends:\ndying now" == log.lost
    expected = [("pid", None, 1), ("die", problem, 1), ("pid", None, 1)]
    assert expected == [(call.name, call.error, call.executions) for call in log.calls]
    assert before != after
    assert ([after, "x"], None) == (second[0], second[1].lost)


def test_server_that_ends_between_trials_costs_none_of_them(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> tuple[Any, ...]:
        async with started(bare(), "every") as source:
            async with attempt(source) as first:
                before = await first.call("quit")
            owners = [task for task in asyncio.all_tasks() if task.get_name() == "mcp server every"]
            await asyncio.gather(*owners)
            async with attempt(source) as second:
                return before, first.log.lost, await second.call("pid"), second.log.lost

    before, lost, after, fine = asyncio.run(run())

    assert (None, None) == (lost, fine)
    assert before != after
    assert ["server 'every' is connected to again: it closed the connection"] == [
        record.getMessage() for record in caplog.records if record.name == "keval_mcp"
    ]


def test_result_that_is_nested_too_deeply_is_a_failure_of_its_kind(outcomes: Callable[..., Any]) -> None:
    provider = Stdio(command="python", args=(str(BARE.with_name("deep.py")), "2", "400"), isolation="condition")

    (((problem,), log),) = outcomes(provider, [("look", {})])

    told = "answered 'look' with JSON that is nested more than 200 levels deep; have the server write flatter JSON"
    assert problem.startswith(f"server 'every' {told}")
    assert (problem, "result_too_deep") == (log.lost, log.kind)


def test_trials_that_share_a_dying_server_are_lost_with_it(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], doorbell: Callable[[], Any]
) -> None:
    async def run() -> list[CallLog]:
        async with (
            doorbell() as bell,
            started(bare(), "every") as source,
            attempt(source, "waits") as waits,
            attempt(source, "dies") as dies,
            attempt(source, "rests") as rests,
            attempt(source, "comes later") as later,
        ):
            await rests.call("pid")
            waiting = asyncio.create_task(waits.call("hang", port=bell.port))
            await bell.rung.wait()
            await dies.call("die")
            await waiting
            await rests.call("pid")
            await later.call("pid")
            return [waits.log, dies.log, rests.log, later.log]

    waits, dies, rests, later = asyncio.run(run())

    assert str(waits.lost).startswith("server 'every' was lost during 'hang': it closed the connection")
    assert str(dies.lost).startswith("server 'every' was lost during 'die': it closed the connection")
    assert "server 'every' was lost between two calls of this trial" == rests.lost
    assert later.lost is None
    assert (True, True, True) == (waits.bystander, dies.bystander, rests.bystander)


@pytest.mark.parametrize(("transport", "provider"), [("http", Http), ("sse", Sse)])
def test_network_server_that_dies_in_a_call_is_lost(
    listening: Callable[..., Any], outcomes: Callable[..., Any], transport: str, provider: Any
) -> None:
    url = listening(transport).url

    (((problem, again), log),) = outcomes(provider(url=url), [("die", {}), ("pid", {})])

    assert problem.startswith("server 'every' was lost during 'die': ")
    assert problem == log.lost
    assert again.startswith(f"server 'every' at {url} did not come up: ")
    assert [("die", 1), ("pid", 0)] == [(call.name, call.executions) for call in log.calls]


def test_network_server_that_forgot_the_session_is_lost_and_connected_to_again(
    listening: Callable[..., Any], attempt: Callable[..., Any]
) -> None:
    one = listening("sessions")

    async def run() -> tuple[Any, ...]:
        async with started(Http(url=one.url), "every") as source:
            async with attempt(source) as first:
                one.stop()
                listening("sessions", one.port)
                during = await first.call("pid")
            async with attempt(source) as second:
                return during, first.log.lost, await second.call("echo", text="back"), second.log.lost

    during, lost, after, fine = asyncio.run(run())

    assert "server 'every' answered 'pid' with HTTP 404 Not Found: Session not found" == during == lost
    assert ("back", None) == (after, fine)


def test_http_error_in_place_of_an_answer_is_no_tool_error(
    lasting: Callable[..., Http], outcomes: Callable[..., Any]
) -> None:
    (((problem, after), log),) = outcomes(lasting(), [("busy", {}), ("echo", {"text": "fine"})])

    assert "server 'every' answered 'busy' with HTTP 503 Service Unavailable: come back later" == problem == log.lost
    assert "fine" == after


def test_server_that_answers_nothing_any_more_is_replaced(
    bare: Callable[..., Stdio], outcomes: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keval_mcp.server.upstream.CHECK_SECONDS", 0.2)
    monkeypatch.setattr("keval_mcp.server.process._STDIN_SECONDS", 0.1)

    ((before, problem), _), ((after,), log) = outcomes(
        bare(timeout=0.5), [("pid", {}), ("hang", {"everything": True})], [("pid", {})]
    )

    assert "server 'every' did not answer 'hang' within 0.5 s: it stopped answering" == problem
    assert before != after
    assert log.lost is None


def test_server_that_comes_back_with_other_tools_is_refused(
    server: Callable[..., Stdio], attempt: Callable[..., Any], tmp_path: Path
) -> None:
    tools = ", ".join(f"with another description of '{name}' ('1' → '2')" for name in ("echo", "pid", "told"))
    changed = (
        f"server 'bare' came back with other tools than at the start of the run: {tools}, and 5 more texts; keep it"
        " unchanged while the run lasts, or say by dynamic_tools that it may change"
    )

    async def run() -> tuple[str, CallLog]:
        async with started(server("bare", str(tmp_path / "starts")), "bare") as source:
            async with attempt(source) as tapped:
                await tapped.call("die")
                again = await tapped.call("die")
            with pytest.raises(ServerLostError, match=re.escape(changed.replace("'2'", "'3'"))):
                async with attempt(source):
                    pass
            return again, tapped.log

    again, log = asyncio.run(run())

    assert changed == again
    assert [1, 0] == [call.executions for call in log.calls]
