"""What a stdio server writes to its standard error; errors show the end of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import attrs

__all__ = ["Stderr"]

_LINES = 20
_BYTES = 8192
_READ = 65536
_PATIENCE = 1.0
"""Seconds for what was written last to arrive; all of it has, unless a process that the server left holds the pipe."""


@attrs.define
class Stderr:
    """The end of what one server process wrote to its standard error; however much that is, no more is kept."""

    _kept: bytes = attrs.field(default=b"", init=False)

    @contextmanager
    def file(self) -> Iterator[TextIO]:
        """Yield the file for the process to write to: a pipe, as a captured `sys.stderr` has no file number."""
        reading, writing = os.pipe()
        # A thread, so that the server can write also while the event loop is busy.
        reader = threading.Thread(target=self._read, args=(reading,), name="keval-mcp-stderr", daemon=True)
        reader.start()
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as file:
                yield file
        finally:
            reader.join(_PATIENCE)

    def tail(self) -> str:
        """Return the last lines written so far."""
        lines = self._kept.decode("utf-8", errors="replace").strip().splitlines()
        return "\n".join(lines[-_LINES:])

    def _read(self, descriptor: int) -> None:
        try:
            while said := os.read(descriptor, _READ):
                self._kept = (self._kept + said)[-_BYTES:]
        finally:
            os.close(descriptor)
