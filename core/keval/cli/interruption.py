"""Ctrl-C and the signals that mean the same: the first stops a run gently, the second ends keval within seconds."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait as wait_for
from contextlib import contextmanager, suppress
from traceback import walk_stack
from typing import Any, TypeVar

import attrs

from keval.cli.messages import tell
from keval.cli.watchdog import STANDSTILL, Watchdog, aside
from keval.execute.admission import Stop, StoppedError

T = TypeVar("T")

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Ctrl-C; what CI and containers send; what a terminal sends when it closes. Windows has no SIGHUP."""
_CLOSING = 5.0
"""Seconds for servers and agents to be closed; then keval ends without them, and their supervisors end them."""
_MOMENT = 0.2


def still_at_work() -> None:
    """Say that a command goes on, if there is no terminal; what has something to say of how far it is says that."""
    if not sys.stderr.isatty():
        tell("still at work")


@attrs.define(eq=False)
class Interruption:
    """Runs the asynchronous part of a command and ends it on signals, also while its event loop stands still.

    Trials in flight get `grace` seconds if there is a `stop`. `last_words` are printed when keval must end without
    having closed what it opened. `beat` says that the command goes on.
    """

    stop: Stop | None = None
    grace: float = 0.0
    last_words: Callable[[], None] | None = None
    beat: Callable[[], object] = still_at_work
    _task: asyncio.Task[Any] | None = attrs.field(default=None, init=False)
    _asked: bool = attrs.field(default=False, init=False)
    _deadline: float | None = attrs.field(default=None, init=False)
    _watchdog: Watchdog = attrs.field(init=False, repr=False)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end. Raises KeyboardInterrupt when it was interrupted."""
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        self._watchdog = Watchdog(frozenset(numbers), self._signalled, self._looked, self.beat)

        async def main() -> T:
            self._task = asyncio.current_task()
            return await work

        # In this order: asyncio takes SIGINT over only while Python's own handler is there.
        with self._listening(numbers), asyncio.Runner() as runner:
            loop = runner.get_loop()
            loop.set_default_executor(_Threads(thread_name_prefix="asyncio"))
            try:
                with self._watchdog.watching(loop):
                    return runner.run(main())
            except (asyncio.CancelledError, StoppedError):
                if self._asked or self._deadline is not None:
                    raise KeyboardInterrupt from None
                raise

    @contextmanager
    def _listening(self, numbers: list[int]) -> Iterator[None]:
        before = [signal.signal(number, self._receive) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                # A shell starts background processes with SIGINT ignored; Python's own handler is wanted there, too.
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else handler)

    def _receive(self, number: int, frame: object) -> None:
        if self._task is None or self._task.done():
            # There is no task to cancel, and what the main thread does instead can be interrupted as usual.
            raise KeyboardInterrupt
        # What follows is done in the watchdog's thread, which goes on if this one blocks its event loop.
        self._watchdog.handle()

    def _signalled(self) -> None:
        """Take the next step of the three; called in the watchdog's thread."""
        if self._task is None or self._task.done():  # what is closing is interrupted in the main thread
            self._deadline = self._deadline or time.monotonic() + _CLOSING
        elif not self._asked and self.stop is not None and self.stop.in_flight:
            self._asked = True
            told = f"stopping: no new trials start, and running trials have {self.grace:g} s to finish"
            aside(lambda: _tell(f"{told}; press Ctrl-C again to stop at once"))
            self._task.get_loop().call_soon_threadsafe(self._ask, self.stop, self._task)
        elif self._deadline is None:
            self._deadline = time.monotonic() + _CLOSING
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        else:
            self._give_up()

    def _ask(self, stop: Stop, task: asyncio.Task[Any]) -> None:
        if stop.in_flight:
            stop.ask()
        else:  # the last trial has ended since the signal came, so nothing would hear of it
            self._deadline = self._deadline or time.monotonic() + _CLOSING
            task.cancel()

    def _looked(self, still: float) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._give_up()
        if self._asked and self._deadline is None and still >= max(self.grace, STANDSTILL):
            self._signalled()  # nobody hears that the run is asked to stop

    def _give_up(self) -> None:
        if self.last_words is not None:
            # Not for longer: the terminal may be what keval waits for.
            aside(self.last_words).join(1.0)
        # An ordinary exit would wait for threads, one of which may be what never returns.
        os._exit(130)


class _Threads(ThreadPoolExecutor):
    """The threads of an event loop, which at its end are waited for only so long: one of them may never return."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._pending: set[Future[Any]] = set()

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(*args, **kwargs)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        # Threads are joined only when none is at work, as joining them has no time limit.
        if wait and not wait_for([*self._pending], timeout=_CLOSING).not_done:
            super().shutdown()


def end_soon(code: object) -> None:
    """End the process soon after its main thread has ended, though others still run, which Python would wait for."""
    main, status = threading.main_thread(), code if isinstance(code, int) else int(code is not None)

    def end() -> None:
        while main.is_alive() and (frames := [*walk_stack(sys._current_frames().get(main.ident or 0))]):
            if frames[-1][0].f_code.co_filename == threading.__file__:  # the interpreter waits for threads
                break
            time.sleep(_MOMENT)
        time.sleep(_CLOSING)
        os._exit(status)

    others = [each for each in threading.enumerate() if not each.daemon and each is not main]
    for each in others:  # as a rule they are about to end
        each.join(_MOMENT)
    if any(each.is_alive() for each in others):
        aside(end)


def _tell(text: str) -> None:
    with suppress(OSError):  # a terminal that was closed
        tell(text)
