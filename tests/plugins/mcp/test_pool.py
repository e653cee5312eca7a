"""What is started ahead of its users: how many, for whom, and that all of it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import pytest

from keval_mcp.server.pool import AHEAD, Pool


@attrs.define
class Stable:
    """Starts numbers when it is let to, calls `ready` after each, and notes which have ended."""

    gate: asyncio.Event = attrs.field(factory=asyncio.Event)
    begun: int = 0
    failing: int = 0
    ready: Callable[[], object] = bool
    ended: list[int] = attrs.field(factory=list)

    @asynccontextmanager
    async def start(self) -> AsyncIterator[int]:
        self.begun += 1
        number = self.begun
        try:
            await self.gate.wait()
            if number <= self.failing:
                raise ConnectionError(f"no {number}")
            asyncio.get_running_loop().call_soon(self.ready)
            yield number
        finally:
            self.ended.append(number)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def users(pool: Pool[int], count: int) -> AsyncIterator[list[int]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(pool.take()) for _ in range(count)]


def test_as_many_are_started_ahead_as_are_in_use_up_to_the_bound_and_to_those_who_still_come() -> None:
    async def run() -> tuple[list[int], int, list[int]]:
        stable, begun = Stable(), []
        stable.gate.set()
        pool = Pool(stable.start, 30)
        for count in (1, 2, 10, 2, 14):
            async with users(pool, count):
                await settled()
                begun.append(stable.begun)
        await pool.close()
        return begun, stable.begun, sorted(stable.ended)

    begun, last, ended = asyncio.run(run())

    assert 8 == AHEAD
    assert [1 + 1, 3 + 2, 13 + 8, 15 + 6, 29 + 1] == begun
    assert list(range(1, last + 1)) == ended


def test_who_waits_longest_gets_what_is_ready_first() -> None:
    async def run() -> tuple[list[tuple[str, int]], int]:
        stable, got = Stable(), list[tuple[str, int]]()
        pool = Pool(stable.start, 3)

        async def use(name: str) -> None:
            async with pool.take() as number:
                got.append((name, number))

        trials = [asyncio.create_task(use(name)) for name in "abc"]
        await settled()
        begun = stable.begun
        stable.gate.set()
        await asyncio.gather(*trials)
        await pool.close()
        return got, begun

    got, begun = asyncio.run(run())

    assert ([("a", 1), ("b", 2), ("c", 3)], 3) == (got, begun), "the last users leave nothing to start ahead"


def test_a_failure_is_told_to_who_waits_and_the_next_one_tries_again() -> None:
    async def run() -> tuple[int, list[int]]:
        stable = Stable(failing=1)
        stable.gate.set()
        pool = Pool(stable.start, 1)
        with pytest.raises(ConnectionError, match="no 1"):
            async with pool.take():
                pass
        async with pool.take() as number:
            pass
        await pool.close()
        return number, stable.ended

    assert (2, [1, 2]) == asyncio.run(run())


@pytest.mark.parametrize("when", ["before it is ready", "when it is ready"])
def test_what_was_started_for_a_user_who_was_cancelled_is_left_to_the_next(when: str) -> None:
    async def run() -> tuple[int, bool, list[int]]:
        stable = Stable()
        pool = Pool(stable.start, 1)
        leaving = asyncio.create_task(pool.take().__aenter__())
        await settled()
        if when == "before it is ready":
            leaving.cancel()
        else:
            stable.ready = leaving.cancel
        stable.gate.set()
        await asyncio.wait({leaving})
        async with pool.take() as number:
            pass
        await pool.close()
        return number, leaving.cancelled(), stable.ended

    assert (1, True, [1]) == asyncio.run(run())


def test_closing_ends_what_is_starting_and_what_was_added() -> None:
    async def run() -> tuple[int, list[int], int]:
        stable, added = Stable(), AsyncExitStack()
        added.callback(stable.ended.append, 0)
        pool = Pool(stable.start, 4)
        pool.add(0, added)
        async with pool.take() as number:
            await settled()
        await pool.close()
        return number, sorted(stable.ended), len(asyncio.all_tasks())

    assert (0, [0, 1], 1) == asyncio.run(run())
