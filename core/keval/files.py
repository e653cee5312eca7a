"""Files: opened if regular, read line by line, written completely or not at all, with errors that name the file."""

from __future__ import annotations

import errno
import os
import stat
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BufferedReader, BufferedWriter, RawIOBase
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from zlib import crc32

import orjson
from cattrs.errors import BaseValidationError

from keval.errors import ConfigError, Problem, RunError

_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A pipe without a writer would keep a blocking open waiting."""
# For reading, too: `cut_torn_line` searches the last newline.
_ADDING = _READING | os.O_RDWR | os.O_CREAT | os.O_APPEND
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
MOST_BYTES = 1 << 28
"""Of a line, and of most files that are read whole: a run of others may have more than there is memory."""


def open_input(path: Path) -> BufferedReader:
    """Open a file for reading.

    Raises:
        OSError: it cannot be opened, or is a directory, a pipe or a device.
    """
    return os.fdopen(_opened(path, _READING), "rb")


def open_kept(path: Path, folder: Path | None = None) -> BufferedReader:
    """Open a file for reading in a folder that others may have made, as a run's: no link there is followed.

    The folder is that of the file, or one above it. Raises OSError as `open_input` does, and for a link.
    """
    return os.fdopen(_opened(path, _READING, folder or path.parent), "rb")


def open_added(path: Path, folder: Path | None = None) -> int:
    """Open a file for appending as `open_kept` does; one that is missing is made. Returns the descriptor."""
    return _opened(path, _ADDING, folder or path.parent)


def _opened(path: Path, flags: int, folder: Path | None = None) -> int:
    """Return the descriptor of a regular file, without following a link below a folder, if one is given."""
    try:
        descriptor = os.open(path, flags) if folder is None else _below(folder, path.relative_to(folder), flags)
    except ValueError as error:  # a NUL in the path, or one that leads out of the folder
        raise OSError(errno.EINVAL, "no file has such a name", repr(str(path))) from error
    except OSError as error:
        # With O_DIRECTORY, Linux tells a link on the way as ENOTDIR and not as ELOOP.
        if folder is None or error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        told = "a link is in its place, or on the way to it, and is not followed"
        raise OSError(errno.ELOOP, told, str(path)) from error
    # Asked of the descriptor: what stands at the path may have been replaced since it was opened.
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file; a directory, a pipe or a device is not read", str(path))


def _below(folder: Path, path: Path, flags: int) -> int:
    *steps, name = path.parts
    if ".." in path.parts:
        raise ValueError(path)
    if not _NO_LINK and any((folder / each).is_symlink() for each in (path, *path.parents)[:-1]):  # on Windows
        raise OSError(errno.ELOOP, "")
    if not steps or not _NO_LINK:
        return os.open(folder / path, flags | _NO_LINK, 0o644)
    # Step by step, as O_NOFOLLOW holds for the last part of a path only.
    with ExitStack() as opened:
        at = None
        for step in (str(folder), *steps):
            at = os.open(step, os.O_RDONLY | os.O_DIRECTORY | (0 if at is None else _NO_LINK), dir_fd=at)
            opened.callback(os.close, at)
        return os.open(name, flags | _NO_LINK, 0o644, dir_fd=at)


def read_input(path: Path, most_bytes: int | None = None) -> bytes:
    """Read a file whole. Raises OSError as `open_input` does, and for a file of more than `most_bytes`."""
    with open_input(path) as file:
        return _whole(file, most_bytes, path)


def read_kept(path: Path, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a file whole that `open_kept` opens. Raises OSError as that does, and for more than `most_bytes`."""
    with open_kept(path, folder) as file:
        return _whole(file, most_bytes, path)


def _whole(file: BufferedReader, most_bytes: int | None, path: Path) -> bytes:
    if most_bytes is not None and os.fstat(file.fileno()).st_size > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
    return file.read()


T = TypeVar("T")
_BLOCK = 1 << 16

DAMAGE = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError, BaseValidationError)
"""What reading a line raises that is not what keval writes."""


def read_lines(path: Path, read: Callable[[bytes], T]) -> Iterator[T]:
    """Read the lines of a file, which may be missing. An incomplete last line, as a power cut leaves it, is ignored.

    Raises RunError if the file cannot be read, and at a damaged line.
    """
    if not os.path.lexists(path):  # a link that leads nowhere is damage
        return
    try:
        file = open_kept(path)
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        for number, line in enumerate(iter(partial(file.readline, MOST_BYTES), b""), start=1):
            if line[-1:] != b"\n":
                if len(line) < MOST_BYTES:
                    return
                raise _damaged(f"{path}:{number}", ValueError("it has no end"))
            try:
                found = read(line)
            except DAMAGE as error:
                raise _damaged(f"{path}:{number}", error) from error
            yield found


def read_json(path: Path, remedy: str = "restore the file") -> Any:
    """Read a file of a run that is JSON; `remedy` is what to do if it is damaged. Raises RunError."""
    try:
        return orjson.loads(read_kept(path))
    except FileNotFoundError as error:
        raise unreadable(path, error, f"is {path.parent} a run directory?") from error
    except OSError as error:
        raise unreadable(path, error, remedy) from error
    except orjson.JSONDecodeError as error:
        raise RunError(f"{path} is damaged: {error}; {remedy}") from error


def unreadable(path: Path, error: OSError, remedy: str = "restore the file") -> RunError:
    """Return the error for a file of a run that cannot be read."""
    return RunError(f"{path} cannot be read: {error.strerror or error}; {remedy}")


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
            # left by a process that was killed
            unfinished.unlink(missing_ok=True)
            with unfinished.open("xb") as file:  # which follows no link that others left there
                yield file
                file.flush()
                # Before the file is renamed: after a power cut, the name must not lead to a file without its content.
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


class LineFile:
    """Lines of a file, by the offsets at which they begin. The file stays open as long as the object lives.

    Threads may share it, as those of a viewer do. `checks` are the CRC-32 of the lines, for files that may change while
    they are used. Raises RunError if the file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        starts: Sequence[int] = (),
        checks: array[int] | None = None,
        opened: Callable[[Path], BufferedReader] = open_input,
    ) -> None:
        self._starts = starts
        self._checks = checks
        self._path = path
        try:
            self._file = opened(path)
        except OSError as error:
            raise unreadable(path, error) from error
        self._lock = Lock()
        weakref.finalize(self, self._file.close)

    def __getitem__(self, position: int) -> bytes:
        """Return a line. Raises ConfigError if it has changed."""
        line = self.at(self._starts[position])
        if self._checks is not None and crc32(line) != self._checks[position]:
            raise ConfigError([Problem(str(self._path), "the file has changed since it was checked; start again")])
        return line

    def at(self, start: int) -> bytes:
        """Return the line that begins at a byte; what is left of it, if it is incomplete."""
        with self._lock:
            self._file.seek(start)
            return self._file.readline(MOST_BYTES)

    def damaged(self, start: int, error: Exception) -> RunError:
        """Return the error for a line of a run, by the byte at which it begins, that is not what keval writes."""
        with self._lock:
            self._file.seek(0)
            before = sum(self._file.read(min(_BLOCK, start - at)).count(b"\n") for at in range(0, start, _BLOCK))
        return _damaged(f"{self._path}:{before + 1}", error)
