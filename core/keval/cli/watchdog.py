"""The watchdog: a thread beside a command's event loop, which still works when that loop or the main thread does not.

It passes signals on, tells where the event loop stands still, and says from time to time that the command goes on.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from traceback import walk_stack
from types import FrameType

import attrs

from keval.cli.messages import tell

HEARTBEAT = 50.0
"""Seconds without a terminal after which a command says that it goes on: CI services end jobs that are silent."""
STANDSTILL = 10.0
"""Seconds for which the event loop may stand still before its place is told."""
_UNMISSED = 6 * STANDSTILL
"""The same where the main thread imports, as from a slow disk, or where no other task waits for the loop."""
_LOCKED = 3 * STANDSTILL
"""Seconds without any Python code, as in C code that holds the interpreter's lock, after which Python dumps its stacks.

It has no other way then, and does so as well when the process was stopped for so long."""
_LOOK = 1.0
_LIBRARY = os.path.dirname(os.__file__)
_FRAMES = 3


@attrs.define(eq=False)
class Watchdog:
    """Watches an event loop while a block runs.

    Each time one of the signals `numbers` arrives, `signalled` is called in the watchdog's thread; `looked` is called
    there every second, with the seconds for which the loop has stood still. `beat` says that the command goes on.
    """

    numbers: Collection[int]
    signalled: Callable[[], object]
    looked: Callable[[float], object]
    beat: Callable[[], object]
    clock: Callable[[], float] = time.monotonic
    _handled: int = attrs.field(default=0, init=False)
    _woken: int = attrs.field(default=0, init=False)
    _passed_on: int = attrs.field(default=0, init=False)
    _pipe: tuple[int, int] = attrs.field(default=(-1, -1), init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _ran: bool = attrs.field(default=True, init=False)
    _ran_at: float = attrs.field(init=False)
    _looked_at: float = attrs.field(init=False)
    _beat_at: float = attrs.field(init=False)
    _armed_at: float = attrs.field(init=False)
    _told: bool = attrs.field(default=False, init=False)
    _speaking: list[threading.Thread] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._ran_at = self._looked_at = self._beat_at = self._armed_at = self.clock()

    @contextmanager
    def watching(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Watch a loop, which runs in this thread, while the block runs."""
        self._pipe = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)
        # A full pipe needs no warning: the watchdog is awake then, and handlers count signals, too.
        before = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False) if os.name == "posix" else -1
        thread = threading.Thread(target=self._watch, args=(loop,), name="keval-watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended = True
            self._wake()
            thread.join()
            for each in self._speaking:
                # What waits for a reader who does not read is left behind.
                each.join(1.0)
            if os.name == "posix":
                signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            faulthandler.cancel_dump_traceback_later()
            for end in self._pipe:
                os.close(end)

    def handle(self) -> None:
        """Note a signal in its handler, which runs as soon as the main thread runs Python code again."""
        self._handled += 1
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._pipe[1], b"\0")

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        poll = select.poll() if os.name == "posix" else None  # `select` takes no descriptor above 1,023
        if poll is not None:
            poll.register(self._pipe[0], select.POLLIN)
        while not self._ended:
            if poll is not None:
                poll.poll(1000 * _LOOK)
                with suppress(BlockingIOError):
                    # The interpreter itself writes the number of each signal there, whatever the main thread does.
                    self._woken += sum(number in self.numbers for number in os.read(self._pipe[0], 4096))
            else:
                # Windows cannot wait for a pipe, and handlers alone tell of signals there.
                time.sleep(_LOOK / 10)
            # Each of the two may miss signals: the interpreter's if somebody else took its place, handlers' in a crowd.
            while self._passed_on < max(self._handled, self._woken) and not self._ended:
                self._passed_on += 1
                self.signalled()
            self.look(loop, self.clock())

    def look(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Look at the loop, and tell what there is to tell at this time."""
        if now - self._looked_at > STANDSTILL / 2:  # nobody ran, as the process was stopped or the lock was held
            self._ran_at += now - self._looked_at
        self._looked_at = now
        # The loop has called back since it was asked to, so it is asked again.
        if self._ran:
            self._ran, self._ran_at, self._told = False, now, False
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._run)
        still = now - self._ran_at
        if still >= STANDSTILL and not self._told:
            # Private, and the only way to see the stack of another thread.
            frame = sys._current_frames()[threading.main_thread().ident or 0]
            imports = any(each.f_code.co_filename.startswith("<frozen importlib") for each, _ in walk_stack(frame))
            if still >= _UNMISSED or not (imports or len(asyncio.all_tasks(loop)) <= 1):
                self._told, told = True, _standstill(frame, still)
                self._say(lambda: tell(told))
        if now - self._beat_at >= HEARTBEAT:
            self._beat_at = now
            self._say(self.beat)
        # Armed again as long as this thread runs. If a process has no standard error, 2 may be any file of its own.
        if now - self._armed_at >= STANDSTILL / 2 and sys.__stderr__ is not None:
            self._armed_at = now
            faulthandler.dump_traceback_later(_LOCKED, file=2)
        self.looked(still)

    def _say(self, call: Callable[[], object]) -> None:
        self._speaking = [*(each for each in self._speaking if each.is_alive()), aside(call)]

    def _run(self) -> None:
        self._ran = True


def aside(call: Callable[[], object]) -> threading.Thread:
    """Call in a thread of its own: what writes may wait for whoever reads, or for a lock of the main thread."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def _standstill(frame: FrameType, still: float) -> str:
    """Say where the main thread stands: in whose code, and in which of its innermost frames."""
    # The frames from the event loop outwards are the same for all that it calls.
    frames = [*takewhile(lambda each: each[0].f_globals.get("__name__") != "asyncio.events", walk_stack(frame))]
    frames = frames or [*walk_stack(frame)]
    places = [f"{each.f_code.co_filename}:{line} in {each.f_code.co_name}" for each, line in frames]
    own = next((place for (each, _), place in zip(frames, places, strict=True) if _is_plugin(each)), places[0])
    within = f" (innermost: {' < '.join(places[:_FRAMES])})" if places[0] != own else ""
    return (
        f"warning: keval has stood still for {round(still)} s at {own}{within}; until that returns, nothing else runs"
        " and no time limit holds. Make it async, or let it run in a thread; Ctrl-C twice ends keval"
    )


def _is_plugin(frame: FrameType) -> bool:
    """Return whether a frame is neither Python's own nor of keval's core."""
    file = frame.f_code.co_filename
    is_library = file.startswith(_LIBRARY) and "site-packages" not in file
    return not (is_library or file.startswith("<") or frame.f_globals.get("__name__", "").split(".")[0] == "keval")
