"""A file of lines that another process appends to, and may replace: each complete line is read once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from keval.errors import RunError
from keval.input_file import open_input

__all__ = ["Tail"]

_REMEMBERED = 4096
"""Bytes before the position that are compared; lines end with what is another trial's in any other file."""


@attrs.define
class Tail:
    """Reads the lines of a file that grows. A last line without its newline is left for later.

    `count` lines were read.
    """

    path: Path
    count: int = attrs.field(default=0, init=False)
    _position: int = attrs.field(default=0, init=False)
    _before: bytes = attrs.field(default=b"", init=False)

    def size(self) -> int:
        """Return how many bytes there are; 0 if there is no such file. Raises RunError."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._unreadable(error) from error

    def goes_on(self, path: Path | None = None) -> bool:
        """Return whether the file, or another one, still begins with what was read. Raises RunError."""
        if not self._position:
            return True
        try:
            with open_input(path or self.path) as file:
                file.seek(self._position - len(self._before))
                return file.read(len(self._before)) == self._before
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unreadable(error) from error

    def lines(self, until: int | None = None) -> Iterator[bytes]:
        """Yield the complete lines that were not read yet, without their newlines, up to the byte `until`.

        A line counts as read when the next one is asked for. Raises RunError.
        """
        try:
            file = open_input(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unreadable(error) from error
        with file:
            file.seek(self._position)
            while until is None or self._position < until:
                try:
                    line = file.readline()
                except OSError as error:
                    raise self._unreadable(error) from error
                if not line.endswith(b"\n"):
                    return
                yield line[:-1]
                self.count += 1
                self._position += len(line)
                self._before = (self._before + line)[-_REMEMBERED:]

    def _unreadable(self, error: OSError) -> RunError:
        return RunError(f"{self.path} cannot be read: {error.strerror or error}")
