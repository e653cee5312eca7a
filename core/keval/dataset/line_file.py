"""A file whose lines can be read again by position."""

from __future__ import annotations

import weakref
from array import array
from pathlib import Path
from zlib import crc32

from keval.errors import ConfigError, Problem

__all__ = ["LineFile"]


class LineFile:
    """Lines of a file, by the offsets at which they begin. The file stays open as long as the object lives.

    `checks` are the CRC-32 of the lines, for files that may change while they are used.
    """

    def __init__(self, path: Path, starts: array[int], checks: array[int] | None = None) -> None:
        self._starts = starts
        self._checks = checks
        self._path = path
        self._file = path.open("rb")
        weakref.finalize(self, self._file.close)

    def __getitem__(self, position: int) -> bytes:
        """Return a line. Raises ConfigError if it has changed."""
        self._file.seek(self._starts[position])
        line = self._file.readline()
        if self._checks is not None and crc32(line) != self._checks[position]:
            raise ConfigError([Problem(str(self._path), "the file has changed since it was checked; start again")])
        return line
