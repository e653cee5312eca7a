"""What a plugin leaves behind: processes, temporary files, threads, tasks, open files and sockets, the environment."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from keval_testing.subject import Subject

LEFT_BEHIND = "nothing left behind"
LEFT_BEHIND_RULES = {
    LEFT_BEHIND: "close what it opens where it opens it: in `finally`, in the context manager it yields from, or in"
    " `aclose()`; change neither the environment nor the working directory",
}
"""The rule of every plugin about what is there when it is done, with its remedy."""
_PATIENCE = 3.0
"""Seconds in which threads and processes may end that were told to."""
_DESCRIPTORS, _THREADS = Path("/proc/self/fd"), Path("/proc/self/task")


@attrs.frozen
class Belongings:
    """What this process has at one moment. Only Linux tells of descriptors and of processes that it started."""

    threads: frozenset[str]
    processes: frozenset[str]
    descriptors: frozenset[str]
    environment: frozenset[tuple[str, str]]
    folder: str

    @classmethod
    def now(cls) -> Belongings:
        return cls(
            frozenset(f"{thread.name} ({thread.ident})" for thread in threading.enumerate()),
            frozenset(_children()),
            frozenset(_descriptors()),
            frozenset(os.environ.items()),
            os.getcwd(),
        )

    def more_than(self, before: Belongings) -> list[str]:
        """Return what is here and was not there before, in words."""
        changed = {name for name, _ in self.environment ^ before.environment}
        found = [
            *(f"the thread {each} still runs" for each in sorted(self.threads - before.threads)),
            *(f"the process {each} still runs" for each in sorted(self.processes - before.processes)),
            *(f"{each} is still open" for each in sorted(self.descriptors - before.descriptors)),
            *(f"the environment variable {name} is changed" for name in sorted(changed)),
        ]
        return [*found, *(["the working directory is changed"] if self.folder != before.folder else [])]


def _children() -> Iterator[str]:
    for task in _THREADS.glob("*/children"):
        try:
            yield from task.read_text(encoding="utf-8").split()
        except OSError:  # the thread has ended
            continue


def _descriptors() -> Iterator[str]:
    for entry in _DESCRIPTORS.glob("*"):
        try:
            yield f"{os.readlink(entry)} (descriptor {entry.name})"
        except OSError:  # it was that of the listing
            continue


@contextmanager
def nothing_left_behind(subject: Subject) -> Iterator[None]:
    """Note what the block leaves behind. What is made for good at its first use must be made before the block."""
    with own_temporary_folder() as temporary:
        gc.collect()
        before = Belongings.now()
        try:
            yield
        finally:
            left = [*_settled(before), *temporary()]
        for each in left:
            subject.broken(LEFT_BEHIND, each)


@contextmanager
def own_temporary_folder() -> Iterator[Callable[[], list[str]]]:
    """Let temporary files be made in a folder of the block's own; yield what returns those that are there, in words."""
    with tempfile.TemporaryDirectory() as folder:
        kept, kept_variable = tempfile.tempdir, os.environ.get("TMPDIR")
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            yield lambda: [f"the temporary {each.name} is still there" for each in sorted(Path(folder).iterdir())]
        finally:
            tempfile.tempdir = kept
            if kept_variable is None:
                os.environ.pop("TMPDIR", None)
            else:
                os.environ["TMPDIR"] = kept_variable


def _settled(before: Belongings) -> list[str]:
    until = time.monotonic() + _PATIENCE
    while True:
        gc.collect()
        left = Belongings.now().more_than(before)
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.02)


def run_to_end(subject: Subject, main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in an event loop of its own, and note the tasks that are left when it is done."""

    async def watched() -> None:
        await main
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if left:
            await asyncio.wait(left, timeout=_PATIENCE)  # those that were cancelled need a turn to end
        for task in left:
            if not task.done():
                subject.broken(LEFT_BEHIND, f"the task {task.get_coro()} still runs")

    asyncio.run(watched())
