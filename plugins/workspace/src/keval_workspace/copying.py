"""Copying a tree of files: by reference where the file system can share what is not written, or else byte by byte."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

Method: TypeAlias = Literal["reflink", "copy"]

_FICLONE = 0x40049409
"""The request of Linux that makes a file share the data of another one until either is written (ioctl_ficlone(2))."""


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


def copy_tree(source: Path, target: Path, limits: Limits) -> Method | None:
    """Copy what is in a folder into another one, which exists, and return how; `None` if no file has content.

    Modes and times of files are kept, and links as they are. Pipes, sockets and devices are left out.

    Raises OSError: something cannot be read or written. Raises TooLargeError.
    """
    method: Method | None = None
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
                    method = _copy_file(found.path, path, status, method)
    for path, mode in reversed(folders):  # a folder may be one that nobody may write in
        os.chmod(path, mode)
    return method


def _copy_file(source: str, target: str, status: os.stat_result, method: Method | None) -> Method | None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # With a mode of keval's own at first, as the file's may forbid to write.
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if status.st_size:
                method = _copy_content(reading, writing, status.st_size, method)
            os.fchmod(writing, stat.S_IMODE(status.st_mode))
            os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return method


def _copy_content(reading: int, writing: int, size: int, method: Method | None) -> Method:
    """Copy a file's content; the `method` is how the one before it was copied."""
    # Where one file could not be shared, no other one is tried.
    if method != "copy" and sys.platform == "linux":
        from fcntl import ioctl  # only Unix has it

        try:
            ioctl(writing, _FICLONE, reading)
        except OSError as error:
            # What Linux says where a file system, or a container, does not share data; anything else is a real failure.
            if error.errno not in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.EPERM}:
                raise
        else:
            return "reflink"
    left = size
    try:
        # It may copy less than it is asked for, and returns 0 where the file has been cut meanwhile.
        while left and sys.platform == "linux" and (copied := os.copy_file_range(reading, writing, left)):
            left -= copied
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EINVAL}:
            raise
    if left:  # the system cannot copy by itself here
        with os.fdopen(reading, "rb", closefd=False) as source, os.fdopen(writing, "wb", closefd=False) as target:
            shutil.copyfileobj(source, target)
    return "copy"
