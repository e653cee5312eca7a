"""What a stdio server writes to its standard error, kept in a file so that errors can show the end of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

import attrs

__all__ = ["Stderr"]

_LINES = 20
_BYTES = 8192


@attrs.define
class Stderr:
    """The standard error of one server process."""

    _path: Path | None = attrs.field(default=None, init=False)
    _last: str = attrs.field(default="", init=False)

    @contextmanager
    def file(self) -> Iterator[TextIO]:
        """Yield the file for the process to write to; its end is remembered and the file removed.

        It is a real file because a child process needs a file number, which a captured `sys.stderr` lacks.
        """
        with TemporaryDirectory(prefix="keval-mcp-") as folder:
            self._path = Path(folder, "stderr.txt")
            try:
                with self._path.open("w", encoding="utf-8") as file:
                    yield file
            finally:
                self._last, self._path = self.tail(), None

    def tail(self) -> str:
        """Return the last lines written so far."""
        if self._path is None:
            return self._last
        with self._path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES))
            lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
        return "\n".join(lines[-_LINES:])
