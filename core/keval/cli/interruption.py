"""Ctrl-C and the signals that mean the same: the first stops a run gently, the second at once, the third ends keval."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import attrs

from keval.execute.admission import Stop, StoppedError
from keval.report.terminal.messages import tell

T = TypeVar("T")

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Ctrl-C; what CI and containers send; what a terminal sends when it closes. Windows has no SIGHUP."""
_CLOSING = 5.0
"""Seconds for servers and agents to be closed; then keval ends without them, and their supervisors end them."""


@attrs.define(eq=False)
class Interruption:
    """Runs the asynchronous part of a command and ends it on signals.

    Trials in flight get `grace` seconds if there is a `stop`. `last_words` are printed when keval must end without
    having closed what it opened.
    """

    stop: Stop | None = None
    grace: float = 0.0
    last_words: Callable[[], None] | None = None
    _task: asyncio.Task[Any] | None = attrs.field(default=None, init=False)
    _asked: bool = attrs.field(default=False, init=False)
    _timer: threading.Timer | None = attrs.field(default=None, init=False)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end. Raises KeyboardInterrupt when it was interrupted."""

        async def main() -> T:
            self._task = asyncio.current_task()
            return await work

        with self._listening():
            try:
                return asyncio.run(main())
            except (asyncio.CancelledError, StoppedError):
                if self._asked or self._timer is not None:
                    raise KeyboardInterrupt from None
                raise
            finally:
                if self._timer is not None:
                    self._timer.cancel()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        before = [signal.signal(number, self._receive) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                # A shell starts background processes with SIGINT ignored; Python's own handler is wanted there, too.
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else handler)

    def _receive(self, number: int, frame: object) -> None:
        # No handler of the event loop's, as that waits for code that keeps the loop from running.
        if self._task is None or self._task.done():
            raise KeyboardInterrupt
        loop = self._task.get_loop()
        if not self._asked and self.stop is not None and self.stop.in_flight:
            self._asked = True
            loop.call_soon_threadsafe(self._ask, self.stop)
        elif self._timer is None:
            self._timer = threading.Timer(_CLOSING, self._give_up)
            self._timer.daemon = True
            self._timer.start()
            loop.call_soon_threadsafe(self._task.cancel)
        else:
            self._give_up()

    def _ask(self, stop: Stop) -> None:
        stop.ask()
        with suppress(OSError):  # a terminal that was closed
            tell(
                f"stopping: no new trials start, and running trials have {self.grace:g} s to finish;"
                " press Ctrl-C again to stop at once"
            )

    def _give_up(self) -> None:
        with suppress(OSError):
            if self.last_words is not None:
                self.last_words()
        os._exit(130)
