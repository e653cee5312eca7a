"""Calls of a plugin as a run makes them: prepared and closed, and cancelled in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from keval.seams.interfaces import Closable, Preparable
from keval_testing.subject import Subject

_TURNS = (1, 2, 5)
"""After how many turns of the event loop a call is cancelled."""
_PATIENCE = 5.0
"""Seconds that a cancelled call may take to end."""


@asynccontextmanager
async def opened(plugin: Any) -> AsyncIterator[Any]:
    """Prepare a plugin for the block and close it afterwards, if it can be."""
    if isinstance(plugin, Preparable):
        await plugin.prepare()
    try:
        yield plugin
    finally:
        if isinstance(plugin, Closable):
            await plugin.aclose()


async def check_cancellation(subject: Subject, call: Callable[[], Awaitable[object]]) -> None:
    """Cancel a call while it waits, early and later, and note under `cancellation` if it goes on or hides that."""
    for turns in _TURNS:
        task = asyncio.ensure_future(call())
        for _ in range(turns):
            await asyncio.sleep(0)
        if task.done():
            task.exception()
            return
        task.cancel()
        await asyncio.wait([task], timeout=_PATIENCE)
        if not task.done():
            subject.broken("cancellation", f"a call that was cancelled still ran after {_PATIENCE:g} s")
            return
        if not task.cancelled():
            outcome = task.exception() or task.result()
            subject.broken("cancellation", f"a call that was cancelled ended with {excerpt(outcome)}")
            return


def excerpt(value: object) -> str:
    """Show a value, or what was raised, on one line, shortened."""
    told = f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else value
    text = " ".join((told if isinstance(told, str) else repr(told)).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
