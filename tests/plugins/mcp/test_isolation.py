"""A trial has a server of its own unless sharing is harmless, or the config decides; it ends with the trial."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval import Sample
from keval.plugin import ServerLostError, ServerSpec, Sharing
from keval.records.servers import ToolListing
from keval_mcp import Http, Stdio
from keval_mcp.server.connection import ServerConnection, Starter
from keval_mcp.server.upstream import Upstream
from tests.contexts import started


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def test_trials_have_processes_of_their_own(bare: Callable[..., Stdio], attempt: Callable[..., Any]) -> None:
    async def run() -> tuple[str, str, list[bool]]:
        async with started(bare(isolation="trial"), "every") as source:
            async with attempt(source, "a") as a:
                async with attempt(source, "b") as b:
                    first, second = await a.call("pid"), await b.call("pid")
                    running = [_runs(first), _runs(second)]
                running += [_runs(first), _runs(second)]
            running += [_runs(first), _runs(second)]
            return first, second, running

    first, second, running = asyncio.run(run())

    assert first != second
    assert [True, True, True, False, False, False] == running


def test_trials_share_no_process_whose_tools_may_change_something(
    bare: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    async def run() -> tuple[int, Any, ToolListing]:
        async with started(bare(isolation="auto"), "every", start_ahead=3) as source:
            pids, told = set(), {}
            for name in "abc":
                async with attempt(source, name) as tapped:
                    pids.add(await tapped.call("pid"))
                    told = json.loads(await tapped.call("told"))
        return len(pids), told, source.tool_listings[0]

    processes, told, tool_listing = asyncio.run(run())

    assert 3 == processes
    assert ({}, "c") == (told["environment"], told["meta"]["keval/trial"]), "it started before it had a trial"
    assert (
        Sharing(False, f"not read-only: echo, pid, told and {len(tool_listing.tools) - 3} more") == tool_listing.sharing
    )


def test_a_process_that_ended_before_its_trial_came_is_started_again(
    bare: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    async def run() -> tuple[bool, str, str | None]:
        before = _children()
        async with started(bare(isolation="auto"), "every", start_ahead=1) as source:
            (ahead,) = _children() - before
            (owner,) = [task for task in asyncio.all_tasks() if task.get_name() == "mcp server every"]
            os.kill(ahead, signal.SIGTERM)
            await asyncio.wait({owner})
            async with attempt(source, "a") as tapped:
                return ahead in _children(), await tapped.call("pid"), tapped.log.lost

    unchanged, pid, lost = asyncio.run(run())

    assert (False, True, None) == (unchanged, pid.isdecimal(), lost)


def _children() -> set[int]:
    """The processes that this one has started; of servers, these are the supervisors."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="utf-8").split()}


def test_a_remote_server_gives_each_trial_a_session_that_is_told_of_it(
    lasting: Callable[..., Http], attempt: Callable[..., Any]
) -> None:
    async def run() -> tuple[list[Any], Sharing | None]:
        async with started(lasting(isolation="auto"), "every") as source:
            told = []
            for name in "ab":
                async with attempt(source, name) as tapped:
                    told.append(json.loads(await tapped.call("told"))["headers"]["x-keval-trial"])
            return told, source.tool_listings[0].sharing

    told, sharing = asyncio.run(run())

    assert ["a", "b"] == told
    assert sharing is not None
    assert (False, False) == (sharing.shared, sharing.verified)


def test_process_of_a_trial_is_told_of_it_when_it_starts(
    bare: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    async def run() -> Any:
        async with (
            started(bare(isolation="trial"), "every", facts=lambda sample: {"mood": "dry"}) as source,
            attempt(source, "a") as tapped,
        ):
            return json.loads(await tapped.call("told"))

    told = asyncio.run(run())

    attempt = told["meta"]["keval/attempt"]
    assert {"KEVAL_TRIAL": "a", "KEVAL_ATTEMPT": attempt, "KEVAL_MOOD": "dry"} == told["environment"]
    assert {"keval/trial": "a", "keval/attempt": attempt, "keval/mood": "dry"} == told["meta"]


def test_session_of_a_trial_is_told_of_it_in_headers(lasting: Callable[..., Http], attempt: Callable[..., Any]) -> None:
    async def run() -> Any:
        async with started(lasting(isolation="trial"), "every") as source, attempt(source, "a") as tapped:
            return json.loads(await tapped.call("told"))

    told = asyncio.run(run())

    assert {"x-keval-trial": "a", "x-keval-attempt": told["meta"]["keval/attempt"]} == told["headers"]


def test_server_lost_by_one_trial_is_no_matter_to_another(
    bare: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    async def run() -> tuple[str | None, str | None]:
        async with (
            started(bare(isolation="trial"), "every") as source,
            attempt(source, "a") as a,
            attempt(source, "b") as b,
        ):
            await b.call("pid")
            await a.call("die")
            await b.call("pid")
            return a.log.lost, b.log.lost

    lost, spared = asyncio.run(run())

    assert str(lost).startswith("server 'every' was lost during 'die'")
    assert spared is None


def test_no_more_servers_start_at_a_time_than_there_are_cores(
    lasting: Callable[..., Http], sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    connect = Upstream.connect
    connecting = 0
    seen: list[int] = []

    async def counted(*args: Any) -> Upstream:
        nonlocal connecting
        connecting += 1
        seen.append(connecting)
        try:
            return await connect(*args)
        finally:
            connecting -= 1

    async def trial(source: Any, name: str) -> None:
        async with source.open(sample, name):
            pass

    async def run() -> None:
        async with started(lasting(isolation="trial"), "every") as source:
            monkeypatch.setattr(Upstream, "connect", counted)
            await asyncio.gather(*(trial(source, str(number)) for number in range(5)))

    asyncio.run(run())

    assert (5, 2) == (len(seen), max(seen))


def test_no_server_waits_for_another_one_that_is_down(lasting_http: str, monkeypatch: pytest.MonkeyPatch) -> None:
    down = ServerSpec(name="down", transport="http", url="http://127.0.0.1:9/mcp", startup_timeout=600)
    up = ServerSpec(name="up", transport="http", url=lasting_http)
    connect, tried = Upstream.connect, asyncio.Event()

    async def tell(server: Any, *rest: Any) -> Upstream:
        if server is up:
            return await connect(server, *rest)
        tried.set()
        raise ServerLostError("it is down")

    async def run() -> bool:
        monkeypatch.setattr(Upstream, "connect", tell)
        starter = Starter(asyncio.Semaphore(1))
        waiting = asyncio.create_task(starter.started(down, ServerConnection(down)).__aenter__())
        async with asyncio.timeout(10):
            await tried.wait()
            async with starter.started(up, ServerConnection(up)) as connection:
                waiting.cancel()
                return (await connection.upstream()).alive

    assert asyncio.run(run())
