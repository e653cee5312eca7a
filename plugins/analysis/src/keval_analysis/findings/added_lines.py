"""Files of a run that people add lines to: what they said of answers, and which were drawn. No line is ever changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Generic, TypeVar

import attrs

from keval.errors import RunError
from keval.files import cut_torn_line, explained, open_added, read_lines, sync_folder
from keval.seams.results import mirror_of
from keval.store.serialization import dump

T = TypeVar("T")
_PATIENCE = 10.0
"""Seconds to wait for others who write to the same file."""


@attrs.frozen
class AddedLines(Generic[T]):
    """A file with a record in each line, which `read_line` reads. As the run may be under way, it has its own lock."""

    path: Path
    read_line: Callable[[bytes], T]

    def read(self) -> Iterator[T]:
        """Read every line. An incomplete last line is ignored. Raises RunError."""
        return read_lines(self.path, self.read_line)

    def append(self, records: Sequence[T]) -> None:
        """Add records, all or none, and return when they are on disk. Raises RunError."""
        # Takes a twentieth of a second to import, which only a run that is written to needs.
        from filelock import FileLock, Timeout

        lines = b"".join(dump(record) + b"\n" for record in records)
        with explained(self.path):
            try:
                mirror = mirror_of(self.path.parent.parent.parent)
                with (
                    FileLock(self.path.with_name(f".{self.path.stem}.lock"), timeout=_PATIENCE),
                    mirror.adding(self.path) if mirror else nullcontext(),
                ):
                    self._append(lines)
            except Timeout as error:
                raise RunError(
                    f"another process has been writing to {self.path} for {_PATIENCE:g} s; try again"
                ) from error

    def _append(self, lines: bytes) -> None:
        is_new = not self.path.exists()
        file = open_added(self.path)
        try:
            # Under the lock: otherwise this could be a line that another process is just writing.
            cut_torn_line(file)
            size = os.fstat(file).st_size
            try:
                written = os.write(file, lines)
                if written < len(lines):
                    raise OSError(f"{written} of {len(lines)} bytes were written")
            except OSError:
                # All records or none: what a full disk took of them is taken back.
                os.ftruncate(file, size)
                raise
            os.fsync(file)
        finally:
            os.close(file)
        # Without this, a power cut may leave the file without a name.
        if is_new:
            sync_folder(self.path.parent)
