"""Telling a cancellation of keval's own from what an SDK does to its task."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from typing import TypeVar

__all__ = ["apart", "being_cancelled"]

T = TypeVar("T")


def being_cancelled() -> bool:
    """Whether the running task itself is being ended, as Ctrl-C does, be it that what it awaited took no notice."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def apart(work: Awaitable[T]) -> T:
    """Await foreign work in a task of its own: it may leave that marked as cancelled, as asyncio's TaskGroup does when
    a child fails (until Python 3.12).

    Raises CancelledError when the caller's task is being ended, whatever the work makes of that; and otherwise what the
    work raises.
    """

    async def held() -> tuple[T | None, SystemExit | None]:
        try:
            return await work, None
        except SystemExit as error:  # out of a task it would end the event loop
            return None, error

    try:
        result, exit_ = await asyncio.create_task(held())
    except BaseException as error:
        if being_cancelled():
            raise asyncio.CancelledError from error
        raise
    finally:
        if inspect.iscoroutine(work):
            work.close()  # one that was ended before it began would complain of never being awaited
    if being_cancelled():
        raise asyncio.CancelledError
    if exit_ is not None:
        raise exit_
    return result  # type: ignore[return-value]  # it is there when there is no exit
