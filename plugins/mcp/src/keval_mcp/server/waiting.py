"""Waiting for an answer within a time that the server's progress extends."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import attrs


@attrs.define(eq=False)
class ProgressTimeout:
    """Waits `timeout` seconds for an answer, and as long again after each sign of progress, `most` seconds in all.

    The time begins when it waits first.
    """

    timeout: float
    most: float | None = None
    _began: float | None = attrs.field(default=None, init=False)
    _until: float = attrs.field(default=0.0, init=False)

    @property
    def seconds(self) -> float:
        """For how long a request may take, as far as is known by now."""
        return self.timeout if self._began is None else round(self._until - self._began, 3)

    def extend(self) -> None:
        """Take a sign of progress."""
        if self.most is not None and self._began is not None:
            self._until = max(self._until, min(_now() + self.timeout, self._began + self.most))

    async def wait(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        """Wait until one of the tasks has ended, or the time is over."""
        if self._began is None:
            self._began = _now()
            self._until = self._began + self.timeout
        while not any(task.done() for task in tasks) and (left := self._until - _now()) > 0:
            await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)


def _now() -> float:
    return asyncio.get_running_loop().time()
