"""The limits of a program in a sandbox: what it uses is measured now and then, and it is ended when it is too much."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

import attrs

from keval.errors import FailureKind, TrialError
from keval_programs.tree import DEEPEST, Tree

LIMIT_KIND: FailureKind = "sandbox_limit"
"""The kind of the failure of a trial whose program used more than it may."""
_INTERVAL = 0.25
"""Seconds between two looks at processes."""
_DISK_INTERVAL, _DISK_SHARE = 1.0, 20
"""Seconds between two looks at the disk, and how many times as long as the last one took."""


@attrs.frozen
class Limits:
    """What a program may use with all that it starts; each is named as the option by which it is raised.

    `max_bytes` and `max_files` are what it adds on the disk, folders counted.
    """

    max_memory: int
    max_processes: int
    max_bytes: int
    max_files: int
    max_stderr_bytes: int


@runtime_checkable
class Limited(Protocol):
    """A sandbox whose programs are watched; the processes in it descend from the one that its command starts."""

    @property
    def limits(self) -> Limits:
        """What each program may use."""
        ...


@attrs.frozen
class OnDisk:
    """How much is in folders."""

    files: int = 0
    bytes: int = 0
    is_too_deep: bool = False

    @classmethod
    def of(cls, folders: Iterable[Path], most_files: float) -> OnDisk:
        """Count what is there, up to more files than `most_files`. A file with several names counts once."""
        files = size = 0
        seen: set[tuple[int, int]] = set()
        for folder in folders:
            with suppress(OSError), Tree.at(folder) as tree:
                for entry in tree.walk(None, most_files - files):
                    files += 1
                    status = entry.status
                    if status.st_nlink == 1 or (status.st_dev, status.st_ino) not in seen:
                        size += status.st_blocks * 512
                    if status.st_nlink > 1:
                        seen.add((status.st_dev, status.st_ino))
                    if files + tree.folders > most_files:
                        break
                files += tree.folders
                if any(path.count("/") >= DEEPEST for path in tree.unseen):
                    return cls(files, size, is_too_deep=True)
        return cls(files, size)


@attrs.frozen
class Watch:
    """Watches one program, which may write in `folders`; `before` is what is there as it starts.

    `together` are the processes of all programs of the trial, such as terminals, which share the limits.
    """

    limits: Limits
    folders: Sequence[Path]
    before: OnDisk
    together: set[int] = attrs.field(factory=set)

    async def exceeded(self, name: str, process: int, stderr_bytes: Callable[[], int]) -> TrialError:
        """Return what the program of a process has used too much of, as soon as that is seen."""
        self.together.add(process)
        look_at_disk = 0.0
        try:
            while True:
                found = await asyncio.to_thread(self._of_processes, [*self.together])
                if stderr_bytes() > self.limits.max_stderr_bytes:
                    found = f"wrote more than {self.limits.max_stderr_bytes:,} bytes on stderr (`max_stderr_bytes`"
                if found is None and time.monotonic() >= look_at_disk:
                    began = time.monotonic()
                    found = await asyncio.to_thread(self._of_disk)
                    took = time.monotonic() - began
                    look_at_disk = time.monotonic() + max(_DISK_INTERVAL, _DISK_SHARE * took)
                if found is not None:
                    return _error(name, found)
                await asyncio.sleep(_INTERVAL)
        finally:
            self.together.discard(process)

    async def failed_by(self, name: str) -> TrialError | None:
        """Return what a program that failed has used too much of, if that is on the disk, where it could not go on."""
        found = await asyncio.to_thread(self._of_disk)
        return None if found is None else _error(name, found)

    def _of_processes(self, programs: list[int]) -> str | None:
        limits = self.limits
        processes = _descendants(programs, limits.max_processes)
        if len(processes) > limits.max_processes:
            return f"started more than {limits.max_processes:,} processes (`max_processes`"
        # What a parent and its children share counts more than once at first, and is looked at closely then.
        for measure in (_own_memory, _shared_memory):
            if sum(map(measure, processes)) <= limits.max_memory:
                return None
        return f"used more than {limits.max_memory:,} bytes of memory (`max_memory`"

    def _of_disk(self) -> str | None:
        limits, before = self.limits, self.before
        now = OnDisk.of(self.folders, before.files + limits.max_files)
        if now.is_too_deep:
            return f"made folders more than {DEEPEST} deep in each other (`max_files`"
        if now.files - before.files > limits.max_files:
            return f"wrote more than {limits.max_files:,} files (`max_files`"
        if now.bytes - before.bytes >= limits.max_bytes:
            return f"wrote {limits.max_bytes:,} bytes or more on the disk (`max_bytes`"
        return None


def _error(name: str, what: str) -> TrialError:
    return TrialError(f"{name} was ended, as it {what} of the sandbox limits it to that)", kind=LIMIT_KIND)


def _descendants(waiting: list[int], most: int) -> list[int]:
    """Return the processes that descend from some, up to one more than `most`."""
    found: list[int] = []
    while waiting and len(found) <= most:
        above = waiting.pop()
        with suppress(OSError):  # it has ended since
            for task in os.listdir(f"/proc/{above}/task"):
                children = Path(f"/proc/{above}/task/{task}/children").read_bytes().split()
                found += map(int, children)
                waiting += map(int, children)
    return found


def _own_memory(process: int) -> int:
    """Return the bytes of a process in memory that are of no file."""
    with suppress(OSError, ValueError):
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_bytes().split()
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _shared_memory(process: int) -> int:
    """Return the same, of what processes share the part of each."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return _own_memory(process)
