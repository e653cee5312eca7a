"""Telling a cancellation of keval's own from one that an SDK lets out of its inside."""

from __future__ import annotations

import asyncio

__all__ = ["being_cancelled"]


def being_cancelled() -> bool:
    """Whether the running task itself is being ended, as Ctrl-C does, be it that what it awaited took no notice."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
