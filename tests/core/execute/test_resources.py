"""The scope: every context is closed in the task that opened it, and none outlives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from keval.execute.bringup.resources import ResourceScope


def test_a_context_is_entered_and_exited_in_one_task() -> None:
    tasks: list[asyncio.Task[object] | None] = []

    @asynccontextmanager
    async def context() -> AsyncIterator[str]:
        tasks.append(asyncio.current_task())
        yield "up"
        tasks.append(asyncio.current_task())

    async def scenario() -> str:
        scope = ResourceScope()
        value = await scope.enter(context())
        assert [] == await scope.close()
        return value

    assert "up" == asyncio.run(scenario())
    assert tasks[0] is tasks[1]


def test_what_fails_to_open_is_raised_where_it_was_entered() -> None:
    @asynccontextmanager
    async def context() -> AsyncIterator[None]:
        raise LookupError("nowhere")
        yield

    async def scenario() -> None:
        scope = ResourceScope()
        try:
            await scope.enter(context())
        finally:
            assert [] == await scope.close()

    with pytest.raises(LookupError, match="nowhere"):
        asyncio.run(scenario())


def test_what_fails_to_close_is_returned() -> None:
    @asynccontextmanager
    async def context() -> AsyncIterator[None]:
        yield
        raise RuntimeError("stuck")

    async def scenario() -> list[str]:
        scope = ResourceScope()
        await scope.enter(context())
        return [str(error) for error in await scope.close()]

    assert ["stuck"] == asyncio.run(scenario())


def test_cancelling_the_entry_cancels_the_opening() -> None:
    ended: list[str] = []

    @asynccontextmanager
    async def context() -> AsyncIterator[None]:
        try:
            await asyncio.Event().wait()
            yield
        finally:
            ended.append("cleaned up")

    async def scenario() -> None:
        entering = asyncio.create_task(ResourceScope().enter(context()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering

    asyncio.run(scenario())

    assert ["cleaned up"] == ended
