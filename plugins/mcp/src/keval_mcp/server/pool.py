"""A pool: what takes long to start and serves one user each is started before somebody asks for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Generic, TypeAlias, TypeVar

import attrs

from keval.execute.shielding import to_the_end

T = TypeVar("T")

AHEAD = 8
"""How many wait for a user at most. A Python server takes 45 MB of memory."""


_Started: TypeAlias = tuple[T, AsyncExitStack]
"""One thing that was started, and what ends it."""


@attrs.define(eq=False)
class Pool(Generic[T]):
    """Starts things by `start`, each for one user, and some ahead: as many as are in use, up to `AHEAD`.

    No more are started ahead than users still come, of `expected` in all. Who waits gets what is ready first, in the
    order in which they came. What fails to start is raised to who has waited longest; if nobody waits, the next user
    starts another one.
    """

    start: Callable[[], AbstractAsyncContextManager[T]]
    expected: int
    _ready: deque[_Started[T]] = attrs.field(factory=deque, init=False)
    _waiting: deque[asyncio.Future[_Started[T]]] = attrs.field(factory=deque, init=False)
    _starts: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _ends: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _starting: int = attrs.field(default=0, init=False)
    _using: int = attrs.field(default=0, init=False)

    def add(self, value: T, stack: AsyncExitStack) -> None:
        """Add what was started already; `stack` ends it."""
        self._ready.append((value, stack))

    @asynccontextmanager
    async def take(self) -> AsyncIterator[T]:
        """Yield one that nobody else had or will have. Raises what starting it raises.

        It is ended afterwards, which nobody waits for but `close`: a server may take seconds to end.
        """
        self._using += 1
        self.expected -= 1
        try:
            value, stack = await self._next()
            try:
                yield value
            finally:
                self._end(stack)
        finally:
            self._using -= 1

    async def close(self) -> None:
        """End everything, also what nobody asked for. Nobody may ask any more. Raises what ending something raised."""
        await to_the_end(self._close())

    async def _close(self) -> None:
        # so that nothing more is started ahead meanwhile
        self.expected = 0
        for start in self._starts:
            start.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        while self._ready:
            self._end(self._ready.popleft()[1])
        for outcome in await asyncio.gather(*self._ends, return_exceptions=True):
            if outcome is not None:
                raise outcome

    def _end(self, stack: AsyncExitStack) -> None:
        # It may end in another task than it was started in, as the session of a connection has an owner task
        # (`Upstream`).
        end = asyncio.create_task(stack.aclose())
        self._ends.add(end)
        end.add_done_callback(self._ended)

    def _ended(self, end: asyncio.Task[None]) -> None:
        # What failed to end stays, so that `close` raises its error.
        if end.cancelled() or end.exception() is None:
            self._ends.discard(end)

    async def _next(self) -> _Started[T]:
        if self._ready:
            started = self._ready.popleft()
            self._fill()
            return started
        waiter: asyncio.Future[_Started[T]] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._fill()
        try:
            return await waiter
        except asyncio.CancelledError:
            # It was handed over in the same moment as the cancellation came; without this nobody would use it or end
            # it.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._hand_over(waiter.result())
            raise

    def _fill(self) -> None:
        """Start what those who wait lack, and then some ahead."""
        ahead = max(0, min(AHEAD, self._using, self.expected))
        waiting = sum(not waiter.done() for waiter in self._waiting)
        for _ in range(waiting + ahead - len(self._ready) - self._starting):
            self._starting += 1
            start = asyncio.create_task(self._start())
            self._starts.add(start)
            start.add_done_callback(self._starts.discard)

    async def _start(self) -> None:
        stack = AsyncExitStack()
        try:
            value = await stack.enter_async_context(self.start())
        except Exception as error:  # noqa: BLE001 - a seam: who waits is told, whatever it is
            if (waiter := self._longest()) is not None:
                waiter.set_exception(error)
        else:
            self._hand_over((value, stack))
        finally:
            self._starting -= 1

    def _hand_over(self, started: _Started[T]) -> None:
        if (waiter := self._longest()) is not None:
            waiter.set_result(started)
        else:
            self._ready.append(started)

    def _longest(self) -> asyncio.Future[_Started[T]] | None:
        """Return who has waited longest and waits still."""
        while self._waiting:
            if not (waiter := self._waiting.popleft()).done():
                return waiter
        return None
