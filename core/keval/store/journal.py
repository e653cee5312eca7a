"""A journal: an append-only file of lines; a writer continues when its line is on disk.

Lines that arrive while a batch is being synced form the next batch (group commit), so that many writers share one
`fdatasync`. What lines refer to may be written ahead of them, to another file, and where they are after them, to an
index.
"""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from keval.errors import RunError
from keval.files import cut_torn_line, explained, open_added, sync_folder
from keval.store.index import IndexFile

# macOS has no fdatasync.
_sync = getattr(os, "fdatasync", os.fsync)


class Journal:
    """Appends lines durably. Use as an async context manager, from one event loop.

    An incomplete last line, as a power cut leaves it, is removed when the journal is opened.
    """

    def __init__(
        self, path: Path, ahead: Callable[[bytes], object] | None = None, index: IndexFile | None = None
    ) -> None:
        """`ahead` writes what goes before lines, in a thread, and returns when it is on disk; it raises RunError."""
        self._path = path
        self._ahead = ahead
        self._index = nullcontext() if index is None else index.growing()
        self._pending: list[tuple[bytes, int]] = []
        self._pending_ahead: list[bytes] = []
        self._synced: asyncio.Future[None] | None = None
        self._broken: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Journal:
        with explained(self._path):
            self._file = open_added(self._path)
            cut_torn_line(self._file)
            # The file may be new, and syncing its lines does not make its name durable.
            sync_folder(self._path.parent)
            self._end = os.fstat(self._file).st_size
        self._note = self._index.__enter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            # The line of a writer that was cancelled may still be on its way to disk.
            while self._task is not None:
                await asyncio.wait([self._task])
        finally:
            os.close(self._file)
            # After a failed write the index may lack entries: told of the error, it stays unfinished and is made anew.
            self._index.__exit__(type(self._broken) if self._broken else None, self._broken, None)

    async def append(self, line: bytes, ahead: bytes = b"", entry: int = 0) -> None:
        """Append a line, given without its newline, and return when it is on disk. Raises RunError.

        What is given as `ahead` is on disk before the line. `entry` is what the index has of the line.
        """
        if self._broken is not None:
            # Lines after an incomplete one could not be read.
            raise self._broken
        if self._synced is None:
            self._synced = asyncio.get_running_loop().create_future()
        self._pending.append((line, entry))
        if ahead:
            self._pending_ahead.append(ahead)
        synced = self._synced
        if self._task is None:
            self._task = asyncio.create_task(self._commit())
        # The writers of a batch share the future: one that is cancelled must not cancel it for the others.
        await asyncio.shield(synced)

    async def _commit(self) -> None:
        try:
            while self._synced is not None:
                batch, ahead, synced = self._pending, self._pending_ahead, self._synced
                self._pending, self._pending_ahead, self._synced = [], [], None
                try:
                    if self._broken is None:  # what was queued meanwhile would follow an incomplete line
                        await asyncio.to_thread(self._write, batch, b"".join(ahead))
                except OSError as error:
                    problem = f"{self._path} cannot be written: {error}; what was written before is kept"
                    self._broken = RunError(problem)
                except Exception as error:  # noqa: BLE001 - its writers would wait for ever
                    self._broken = error
                if self._broken is None:
                    synced.set_result(None)
                else:
                    synced.set_exception(self._broken)
        finally:
            self._task = None

    def _write(self, batch: list[tuple[bytes, int]], ahead: bytes) -> None:
        if ahead and self._ahead:
            self._ahead(ahead)
        entries = array("Q")
        for line, entry in batch:
            entries.append(entry >> 1)
            entries.append(self._end << 1 | entry & 1)
            self._end += len(line) + 1
        view = memoryview(b"".join(line + b"\n" for line, _ in batch))
        # `os.write` may take only a part, as on a disk that is nearly full.
        while view:
            view = view[os.write(self._file, view) :]
        _sync(self._file)
        # Last, as who reads the run meanwhile expects a whole line wherever an entry leads.
        if self._note is not None:
            self._note(entries)
