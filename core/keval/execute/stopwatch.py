"""A stopwatch: the time of one attempt, without what it spends waiting until a model may be asked again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

__all__ = ["Stopwatch"]


@attrs.define(eq=False)
class Stopwatch:
    """Tells an attempt's time in seconds, and stops its time limit while the attempt is `paused`.

    What pauses it may run in another task, such as that of a proxy that the agent sends its requests to.
    """

    _waited: float = 0.0
    _waiting: int = 0
    _since: float = 0.0
    _limit: asyncio.Timeout | None = None
    _left: float | None = None

    def now(self) -> float:
        """Return a time of which only differences mean something; it stands still while the attempt is paused."""
        moment = self._since if self._waiting else time.perf_counter()
        return moment - self._waited

    @contextmanager
    def limiting(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Stop this time limit, too, while the attempt is paused."""
        self._limit = limit
        try:
            yield
        finally:
            self._limit = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the time; several pauses at once count as one."""
        if not self._waiting:
            self._since = time.perf_counter()
            self._hold()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += time.perf_counter() - self._since
                self._release()

    def expire(self) -> None:
        """End the attempt now, as if its time were over."""
        limit = self._limit
        self._left = None
        if limit is not None and not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time())

    def _hold(self) -> None:
        limit = self._limit
        self._left = None
        if limit is not None and not limit.expired() and (when := limit.when()) is not None:
            self._left = when - asyncio.get_running_loop().time()
            limit.reschedule(None)

    def _release(self) -> None:
        limit = self._limit
        if limit is not None and not limit.expired() and self._left is not None:
            limit.reschedule(asyncio.get_running_loop().time() + self._left)
