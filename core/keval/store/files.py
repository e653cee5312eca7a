"""The files of a run: read line by line, written whole or not at all, with errors that name them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, RawIOBase
from pathlib import Path
from typing import TypeVar

import orjson
from cattrs.errors import BaseValidationError

from keval.errors import RunError

__all__ = ["explained", "read_lines", "replacing", "write_all"]

T = TypeVar("T")


def read_lines(path: Path, read: Callable[[bytes], T]) -> Iterator[T]:
    """Read the lines of a file that need not exist; a torn last line, which a power cut leaves, is none.

    Raises RunError when it cannot be read, and at a line that is damaged.
    """
    if not path.exists():
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    with file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield read(line)
            except (orjson.JSONDecodeError, LookupError, TypeError, ValueError, BaseValidationError) as error:
                raise RunError(f"{path}:{number}: this line is damaged: {error!r}; remove it to go on") from error


@contextmanager
def replacing(path: Path) -> Iterator[BufferedWriter]:
    """Write a whole file, or leave the one that is there. Raises RunError."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with explained(path):
        try:
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise RunError for what the operating system refuses."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error}; what was written before is kept") from error


def write_all(file: RawIOBase, data: bytes) -> None:
    """Write to an unbuffered file, which may take less at once."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]
