"""Work that is done whole, even when what waits for it is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def settle(task: asyncio.Task[Any], within: float | None = None) -> bool:
    """Wait until `task` has ended, `within` seconds if given, and return whether it has.

    A cancellation that arrives meanwhile is raised afterwards. Without this, Ctrl-C would leave behind whatever the
    task was about to close. The task's own outcome is left to whoever asks it.
    """
    cancelled: asyncio.CancelledError | None = None
    deadline = None if within is None else asyncio.get_running_loop().time() + within
    # In a loop, as a second cancellation would end the wait as the first one did.
    while not task.done():
        left = None if deadline is None else deadline - asyncio.get_running_loop().time()
        if left is not None and left <= 0:
            break
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.done()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Do `work` whole even when cancelled meanwhile; the cancellation is passed on afterwards."""
    task = asyncio.create_task(work)
    try:
        await settle(task)
    finally:
        done = task.result()  # its failure tells more than a cancellation does
    return done


async def in_thread(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Do blocking `work` in a thread, whole even when cancelled meanwhile, and return its result."""
    return await to_the_end(asyncio.to_thread(work, *args, **options))
