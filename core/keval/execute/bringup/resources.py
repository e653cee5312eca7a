"""Resources of a run: async context managers that are kept open, each in a task of its own.

An MCP session must be closed in the task that opened it (because of anyio's cancel scopes), and several should be
opened concurrently. So each context manager has a task that enters it, waits, and exits it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from keval.seams.interfaces import Closable

T = TypeVar("T")

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_IN_BRACKETS = re.compile(r"\[(.+)\](?::\d+)?")


def reach_loopback(environ: MutableMapping[str, str]) -> None:
    """Add loopback to the hosts that are reached without the environment's proxy, which every SDK reads.

    The gateway and the tap listen there. IPv6 addresses lose their brackets, at which httpx fails.
    """
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [_IN_BRACKETS.sub(r"\1", host.strip()) for host in environ.get(name, "").split(",") if host.strip()]
        if "*" not in hosts:
            environ[name] = ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])


class ResourceScope:
    """Enters context managers, also concurrently, and exits all of them with `close`."""

    def __init__(self) -> None:
        self._closing: list[Closable] = []
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter `manager` in a task of its own and return what it yields; raises what entering raises."""
        ready: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._hold(manager, ready))
        self._tasks.append(task)
        try:
            # Shielded: if waiting is cancelled, `_hold` must still be able to set the result.
            return await asyncio.shield(ready)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise

    async def _hold(self, manager: AbstractAsyncContextManager[T], ready: asyncio.Future[T]) -> None:
        try:
            async with manager as value:
                ready.set_result(value)
                await self._stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            if isinstance(error, asyncio.CancelledError):
                ready.cancel()
                raise
            # Raised by `enter` alone; raised here, too, `close` would return it a second time.
            ready.set_exception(error)

    def close_later(self, plugin: object) -> None:
        """Close a plugin at the end, before any context manager is exited, if it is `Closable`."""
        if isinstance(plugin, Closable):
            self._closing.append(plugin)

    async def close(self) -> list[BaseException]:
        """Close and exit everything, and return what went wrong."""
        closing = [plugin.aclose() for plugin in self._closing]
        closed = await asyncio.gather(*closing, return_exceptions=True)
        self._stop.set()
        outcomes = [*closed, *await asyncio.gather(*self._tasks, return_exceptions=True)]
        return [outcome for outcome in outcomes if isinstance(outcome, Exception)]
