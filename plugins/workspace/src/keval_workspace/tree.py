"""A tree of files that nobody vouches for: it is walked and read without following a link or opening a device."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import attrs

DEEPEST = 200
"""Folders within folders; what lies deeper is not looked at, as each folder is opened step by step from the root."""
_BLOCK = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
GIT = ".git"
"""The folder that Git keeps its own files in, which are neither compared nor kept."""


@attrs.frozen
class Entry:
    """What is no folder: a file, a link, a pipe, a socket or a device. `path` is relative, with `/` between names.

    `folder` is the descriptor of the folder that it is in, which is open until the next entry is asked for.
    """

    path: str
    status: os.stat_result
    folder: int

    @property
    def name(self) -> str:
        """Its name in its folder."""
        return self.path.rpartition("/")[2]

    def content(self, most: int) -> bytes | None:
        """Return the content of a file, or where a link leads; `None` of all else, and of more than `most` bytes.

        Raises OSError: it cannot be read.
        """
        if stat.S_ISLNK(self.status.st_mode):
            return os.fsencode(os.readlink(self.name, dir_fd=self.folder))
        if not stat.S_ISREG(self.status.st_mode) or self.status.st_size > most:
            return None
        return self._read(self._whole)

    def fingerprint(self, most: int) -> bytes:
        """Return what tells its content from another of the same kind and size: the SHA-256 of one above `most` bytes.

        Raises OSError: it cannot be read.
        """
        content = self.content(most)
        if content is None and stat.S_ISREG(self.status.st_mode):
            return self._read(self._digest)
        return content or b""

    def _whole(self, descriptor: int) -> bytes:
        found, left = b"", self.status.st_size  # a file that grows meanwhile is read to where it ended
        while left > 0 and (block := os.read(descriptor, left)):
            found += block
            left -= len(block)
        return found

    def _digest(self, descriptor: int) -> bytes:
        found, left = sha256(), self.status.st_size
        while left > 0 and (block := os.read(descriptor, min(_BLOCK, left))):
            found.update(block)
            left -= len(block)
        return found.digest()

    def _read(self, read: Callable[[int], bytes]) -> bytes:
        descriptor = os.open(self.name, _FILE, dir_fd=self.folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # it was replaced just now
                raise OSError(f"{self.path!r} is no file any more")
            return read(descriptor)
        finally:
            os.close(descriptor)


@attrs.define
class Tree:
    """A tree by the name of its root and the descriptor of the folder that this is in.

    After a walk `is_gone` says that the root is no folder any more, and `unseen` has why a folder could not be looked
    into, by path.
    """

    parent: int
    name: str
    is_gone: bool = attrs.field(default=False, init=False)
    unseen: dict[str, str] = attrs.field(factory=dict, init=False)

    @classmethod
    @contextmanager
    def at(cls, root: Path) -> Iterator[Tree]:
        """Open the tree with this root, for as long as the block runs."""
        parent = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield cls(parent, root.name)
        finally:
            os.close(parent)

    def walk(self) -> Iterator[Entry]:
        """Yield all entries but Git's own; two descriptors are open at a time, however deep the tree is."""
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                yield from self._entries(folder, waiting)
            except (FileNotFoundError, NotADirectoryError):  # a folder that was removed just now
                self.is_gone = self.is_gone or not folder
            except OSError as error:
                self.unseen[folder] = error.strerror or str(error)

    def is_hidden(self, path: str) -> bool:
        """Return whether a folder on the way to a path could not be looked into."""
        folders = ("", *(path[:at] for at, character in enumerate(path) if character == "/"))
        return any(folder in self.unseen for folder in folders)

    def find(self, path: str) -> Entry:
        """Return the entry with a path, as it is now; close its `folder`. Raises OSError: it cannot be looked at."""
        folder, _, name = path.rpartition("/")
        descriptor = self._opened(folder)
        try:
            return Entry(path, os.stat(name, dir_fd=descriptor, follow_symlinks=False), descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def _entries(self, folder: str, waiting: list[str]) -> Iterator[Entry]:
        descriptor = self._opened(folder)
        try:
            with os.scandir(descriptor) as listing:
                for found in listing:
                    path = f"{folder}/{found.name}" if folder else found.name
                    if not found.is_dir(follow_symlinks=False):
                        try:
                            status = found.stat(follow_symlinks=False)
                        except FileNotFoundError:  # it was removed just now
                            continue
                        except OSError as error:  # the folder can be listed, and not be entered
                            self.unseen[folder] = error.strerror or str(error)
                            continue
                        yield Entry(path, status, descriptor)
                    elif found.name != GIT:
                        waiting.append(path)
        finally:
            os.close(descriptor)

    def _opened(self, folder: str) -> int:
        """Open a folder step by step, so that no link on the way is followed. Raises OSError."""
        descriptor = os.open(self.name, _FOLDER, dir_fd=self.parent)
        steps = folder.split("/") if folder else []
        if len(steps) > DEEPEST:
            os.close(descriptor)
            raise OSError(f"it lies deeper than {DEEPEST} folders")
        for step in steps:
            try:
                following = os.open(step, _FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = following
        return descriptor
