"""Stopping a run: trials in flight may finish, no other one begins."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import attrs

from keval.errors import KevalError

__all__ = ["Stop", "StoppedError"]


class StoppedError(KevalError):
    """A run was asked to stop, and did; what was finished is on disk."""


@attrs.define(eq=False)
class Stop:
    """Asks a run to stop. `in_flight` says whether trials are being run, which may finish then."""

    in_flight: bool = attrs.field(default=False, init=False)
    _asked: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def ask(self) -> None:
        """Ask the run to stop; call it in the run's event loop."""
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether the run was asked to stop."""
        return self._asked.is_set()

    async def run(self, trials: Coroutine[Any, Any, None], grace: float) -> None:
        """Await what runs the trials; when asked to stop, only `grace` seconds longer.

        Raises:
            StoppedError: the run was asked to stop.
        """
        running = asyncio.create_task(trials)
        asked = asyncio.create_task(self._asked.wait())
        self.in_flight = True
        try:
            await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait({running}, timeout=grace)
        finally:
            self.in_flight = False
            asked.cancel()
            running.cancel()
            await asyncio.wait({running, asked})
        if not running.cancelled():
            running.result()
        if self._asked.is_set():
            raise StoppedError("the run was stopped")
