"""Whether a trial lost a server to its own call or to another trial's, and the server of its own that it gets then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keval.records.servers import CallLog
from keval_mcp import Http, Stdio
from tests.contexts import started


def test_a_trial_whose_calls_alone_were_unanswered_is_no_bystander(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], doorbell: Callable[[], Any]
) -> None:
    async def run() -> list[CallLog]:
        async with (
            doorbell() as bell,
            started(bare(), "every") as source,
            attempt(source, "answered") as answered,
            attempt(source, "dies") as dies,
            attempt(source, "comes later") as later,
        ):
            await answered.call("pid")
            waiting = asyncio.create_task(dies.call("hang", port=bell.port))
            await bell.rung.wait()
            await dies.call("die")
            await waiting
            await later.call("die")
            return [dies.log, later.log]

    dies, later = asyncio.run(run())

    assert str(dies.lost).startswith("server 'every' was lost during ")
    assert not dies.bystander
    assert later.bystander, "the server was lost since it came, so it may be down for that"


def test_a_trial_that_shares_no_longer_has_a_process_of_its_own(
    bare: Callable[..., Stdio], attempt: Callable[..., Any]
) -> None:
    async def run() -> tuple[list[str], CallLog, CallLog]:
        async with (
            started(bare(), "every") as source,
            attempt(source, "shares") as shares,
            attempt(source, "own", isolation="trial") as own,
        ):
            pids = [await shares.call("pid"), await own.call("pid")]
            await own.call("die")
            return [*pids, await shares.call("pid")], shares.log, own.log

    (before, other, after), shares, own = asyncio.run(run())

    assert (before, None) == (after, shares.lost)
    assert before != other
    assert (True, False) == (own.lost is not None, own.bystander)


def test_a_server_that_does_not_come_up_twice_is_shared_again(
    server: Callable[..., Stdio], attempt: Callable[..., Any], tmp_path: Path
) -> None:
    async def run() -> tuple[str, str]:
        # It describes its tools by the number of its start, so a second one is of another condition.
        async with (
            started(server("bare", str(tmp_path / "starts")), "bare") as source,
            attempt(source, "a") as a,
            attempt(source, "b", isolation="trial") as b,
        ):
            return await a.call("pid"), await b.call("pid")

    shared, again = asyncio.run(run())

    assert shared == again


def test_sessions_of_ones_own_do_not_part_the_users_of_one_network_server(
    listening: Callable[..., Any], attempt: Callable[..., Any]
) -> None:
    one = listening("http")

    async def run() -> list[CallLog]:
        async with (
            started(Http(url=one.url), "every") as source,
            attempt(source, "dies", isolation="trial") as dies,
            attempt(source, "rests", isolation="trial") as rests,
        ):
            await rests.call("pid")
            await dies.call("die")
            await rests.call("pid")
            return [dies.log, rests.log]

    dies, rests = asyncio.run(run())

    assert (True, False) == (dies.lost is not None, dies.bystander)
    assert (True, True) == (rests.lost is not None, rests.bystander)


def test_a_network_server_that_starts_again_is_waited_for(
    listening: Callable[..., Any], attempt: Callable[..., Any]
) -> None:
    one = listening("http")

    async def run() -> tuple[str | None, str]:
        async with started(Http(url=one.url), "every") as source:
            async with attempt(source) as first:
                await first.call("die")
            opening = asyncio.create_task(_says(attempt, source))
            done, _ = await asyncio.wait({opening}, timeout=0.4)
            assert not done
            listening("http", one.port)
            return first.log.lost, await opening

    lost, said = asyncio.run(run())

    assert lost is not None
    assert "back" == said


async def _says(attempt: Callable[..., Any], source: Any) -> str:
    async with attempt(source) as tapped:
        said: str = await tapped.call("echo", text="back")
        return said
