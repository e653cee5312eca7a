"""Waiting for a task to end, even while being cancelled oneself."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["settle"]


async def settle(task: asyncio.Task[Any], within: float | None = None) -> bool:
    """Wait until `task` has ended, `within` seconds if given, and return whether it has.

    A cancellation that arrives meanwhile is raised afterwards. Without this, Ctrl-C would leave behind whatever the
    task was about to close. The task's own outcome is left to whoever asks it.
    """
    cancelled: asyncio.CancelledError | None = None
    deadline = None if within is None else asyncio.get_running_loop().time() + within
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
