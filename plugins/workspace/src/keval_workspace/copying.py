"""Copying a tree of files, with their modes and times."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import attrs


class TooLargeError(Exception):
    """A tree has more files or bytes than it may have."""


@attrs.frozen
class Limits:
    """The most files and bytes that a workspace may begin with."""

    files: int
    bytes: int

    def check(self, files: int, size: int) -> None:
        """Raise TooLargeError for more than that."""
        if files > self.files:
            raise TooLargeError(f"it has more than {self.files:,} files; give less to copy, or raise `max_files`")
        if size > self.bytes:
            raise TooLargeError(f"it has more than {self.bytes:,} bytes; give less to copy, or raise `max_bytes`")


def copy_tree(source: Path, target: Path, limits: Limits) -> None:
    """Copy what is in a folder into another one, which exists.

    Modes and times of files are kept, and links as they are. Pipes, sockets and devices are left out.

    Raises OSError: something cannot be read or written. Raises TooLargeError.
    """
    files = size = 0
    folders: list[tuple[str, int]] = []
    waiting = [(str(source), str(target))]
    while waiting:
        origin, copy = waiting.pop()
        with os.scandir(origin) as listing:
            for found in listing:
                path = f"{copy}/{found.name}"
                status = found.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    os.mkdir(path)
                    folders.append((path, stat.S_IMODE(status.st_mode)))
                    waiting.append((found.path, path))
                    continue
                files, size = files + 1, size + status.st_size
                limits.check(files, size)
                if stat.S_ISLNK(status.st_mode):
                    os.symlink(os.readlink(found.path), path)
                elif stat.S_ISREG(status.st_mode):
                    _copy_file(found.path, path, status)
    for path, mode in reversed(folders):  # a folder may be one that nobody may write in
        os.chmod(path, mode)


def _copy_file(source: str, target: str, status: os.stat_result) -> None:
    with (
        open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as reading,
        # With a mode of keval's own at first, as the file's may forbid to write.
        open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as writing,
    ):
        shutil.copyfileobj(reading, writing)
        writing.flush()
        os.fchmod(writing.fileno(), stat.S_IMODE(status.st_mode))
        os.utime(writing.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
