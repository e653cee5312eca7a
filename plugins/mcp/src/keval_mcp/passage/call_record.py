"""What the transcript has of a call, from when that is known."""

from __future__ import annotations

import time
from typing import Any

import attrs

from keval import ToolCall
from keval.records.servers import CallLog


@attrs.define(eq=False)
class CallRecord:
    """Records `call` in `log`, and again in the same place when more is known of it.

    `began` is in seconds of a clock of which only differences mean something.
    """

    log: CallLog
    call: ToolCall
    began: float = attrs.field(factory=time.perf_counter)
    _place: int | None = attrs.field(default=None, init=False)

    def know(self, **known: Any) -> None:
        """Change fields of the call that is recorded later."""
        self.call = attrs.evolve(self.call, **known)

    def put(self, **known: Any) -> None:
        """Record what has come of the call by now: its `result` or `error`, and what else is known by that."""
        took = time.perf_counter() - self.began
        if self._place is None:
            self._place = len(self.log.calls)
        put = attrs.evolve(self.call, **known, duration=took, at=time.time() - took)
        self.log.calls[self._place : self._place + 1] = [put]
