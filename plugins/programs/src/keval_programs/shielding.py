"""Work that is done whole, even when its trial is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[None, None, object]) -> None:
    """Do `work` whole even when cancelled meanwhile; the cancellation is passed on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    # In a loop, as a second cancellation would end the wait as the first one did.
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


async def in_thread(work: Callable[[], T]) -> T:
    """Do blocking `work` in a thread, whole even when cancelled meanwhile, and return its result."""
    found: list[T] = []
    await to_the_end(asyncio.to_thread(lambda: found.append(work())))
    return found[0]
