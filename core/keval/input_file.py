"""Opening the files that a user names: regular files only, because a pipe or a device may never end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

__all__ = ["open_input", "read_input"]


def open_input(path: Path) -> BufferedReader:
    """Open a file for reading.

    Raises:
        OSError: it cannot be opened, or is a directory, a pipe or a device.
    """
    try:
        # A pipe without a writer would keep a blocking open waiting.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:  # a NUL in the path
        raise OSError(errno.EINVAL, "no file has such a name", repr(str(path))) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file; a directory, a pipe or a device is not read", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_input(path: Path, most_bytes: int | None = None) -> bytes:
    """Read a file whole. Raises OSError as `open_input` does, and for a file of more than `most_bytes`."""
    with open_input(path) as file:
        content = file.read(-1 if most_bytes is None else most_bytes + 1)
    if most_bytes is not None and len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
    return content
