"""The files of a run: read line by line, written completely or not at all, with errors that name the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, RawIOBase
from pathlib import Path
from typing import Any, TypeVar

import orjson
from cattrs.errors import BaseValidationError

from keval.errors import RunError
from keval.input_file import open_input, read_input

__all__ = [
    "DAMAGE",
    "cut_torn_line",
    "explained",
    "read_json",
    "read_lines",
    "replacing",
    "sync_folder",
    "undamaged",
    "write_all",
]

T = TypeVar("T")
_BLOCK = 1 << 16

DAMAGE = (AttributeError, LookupError, RecursionError, TypeError, ValueError, BaseValidationError)
"""What reading a line raises that is not what keval writes."""


def read_lines(path: Path, read: Callable[[bytes], T]) -> Iterator[T]:
    """Read the lines of a file, which may be missing. An incomplete last line, as a power cut leaves it, is ignored.

    Raises RunError if the file cannot be read, and at a damaged line.
    """
    if not path.exists():
        return
    try:
        file = open_input(path)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    with file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                found = read(line)
            except DAMAGE as error:
                raise _damaged(f"{path}:{number}", error) from error
            yield found


def read_json(path: Path) -> Any:
    """Read a file of a run that is JSON. Raises RunError."""
    try:
        return orjson.loads(read_input(path))
    except (OSError, orjson.JSONDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}; is {path.parent} a run directory?") from error


@contextmanager
def undamaged(place: str) -> Iterator[None]:
    """Raise RunError for what is raised when a line of a run is not what keval writes."""
    try:
        yield
    except DAMAGE as error:
        raise _damaged(place, error) from error


def _damaged(place: str, error: Exception) -> RunError:
    return RunError(f"{place}: this line is damaged: {error!r:.300}; remove it to go on")


@contextmanager
def replacing(path: Path, *, sync_name: bool = True) -> Iterator[BufferedWriter]:
    """Write a file completely, or leave the existing one as it is. Raises RunError.

    Without `sync_name` the file's name is not durable until the caller syncs its folder, once for several files.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    with explained(path):
        try:
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            if sync_name:
                sync_folder(path.parent)
        finally:
            unfinished.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make the names of a folder's files durable: syncing a file does not make its name so. Raises OSError."""
    if os.name == "nt":  # folders cannot be opened there
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise RunError for errors of the operating system."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or error
        raise RunError(f"{path} cannot be written: {problem}; what was written before is kept") from error


def write_all(file: RawIOBase, data: bytes) -> None:
    """Write all data to an unbuffered file, whose `write` may take only a part."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def cut_torn_line(file: int) -> None:
    """Remove an incomplete last line, as a power cut leaves it; a line after it could not be read."""
    end = size = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)
        os.fsync(file)
