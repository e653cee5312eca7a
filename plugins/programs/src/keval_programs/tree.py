"""A folder that an agent had: looked at, read and written without following a link out of it or opening a device.

Everything is opened relative to the descriptor of the folder that it is in, so that nothing is won by putting a link in
its place meanwhile. `tests/attacks/test_opening.py` finds who opens such files otherwise.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import attrs

DEEPEST = 200
"""Folders within folders; what lies deeper is not looked at, as each folder is opened step by step from the root."""
_BLOCK = 1 << 20
# As many links as Linux follows (path_resolution(7)).
_MOST_LINKS, _MOST_STEPS = 40, 1000
_FOLDER, _FILE, _NEW = (
    flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    for flags in (
        os.O_RDONLY | getattr(os, "O_DIRECTORY", 0),
        # To open a pipe that was put in the place of a file would wait for its other end.
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0),
        os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    )
)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd
"""Not on Windows, which has neither workspaces nor sandboxes; there a file is written by its path."""
GIT = ".git"
"""The folder that Git keeps its own files in, which are neither compared nor kept."""


class LedOutError(OSError):
    """A link leads out of the folder, to `target`."""

    def __init__(self, path: str, target: str) -> None:
        self.target = target
        super().__init__(errno.ELOOP, "a link on its way leads out of the workspace", path)


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

    @property
    def kind(self) -> str | None:
        """What it is in place of a file, in words."""
        mode = self.status.st_mode
        words = {stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFREG: None}
        return words.get(stat.S_IFMT(mode), "special file")

    def content(self, most: int) -> bytes | None:
        """Return the content of a file, or where a link leads; `None` of all else, and of more than `most` bytes.

        Raises OSError: it cannot be read.
        """
        if stat.S_ISLNK(self.status.st_mode):
            return os.fsencode(os.readlink(self.name, dir_fd=self.folder))
        if not stat.S_ISREG(self.status.st_mode) or self.status.st_size > most:
            return None
        with self._blocks() as blocks:
            return b"".join(blocks)

    def fingerprint(self, most: int) -> bytes:
        """Return what tells its content from another of the same kind and size: the SHA-256 of one above `most` bytes.

        Raises OSError: it cannot be read.
        """
        content = self.content(most)
        if content is not None or not stat.S_ISREG(self.status.st_mode):
            return content or b""
        found = sha256()
        with self._blocks() as blocks:
            for block in blocks:
                found.update(block)
        return found.digest()

    def copy(self, to: BinaryIO) -> None:
        """Copy the bytes that the file has now. Raises OSError: it cannot be read, or is none."""
        with self._blocks() as blocks:
            to.writelines(blocks)

    @contextmanager
    def _blocks(self) -> Iterator[Iterator[bytes]]:
        if self.kind:  # opening a device may do something
            raise OSError(errno.EINVAL, f"it is a {self.kind}", self.path)
        descriptor = os.open(self.name, _FILE, dir_fd=self.folder)
        try:
            # Looked at again: only what is open cannot be replaced any more.
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it was replaced just now", self.path)
            yield _blocks(descriptor, self.status.st_size)
        finally:
            os.close(descriptor)


def _blocks(descriptor: int, left: int) -> Iterator[bytes]:
    """Yield what a file has up to the size that it had: one that grows meanwhile would never end."""
    while left > 0 and (block := os.read(descriptor, min(_BLOCK, left))):
        yield block
        left -= len(block)


@attrs.define
class Tree:
    """A folder by its name and the descriptor of the folder that it is in; `path` is where the agent saw it.

    Without a `path`, absolute links lead out of it. After a walk `is_gone` says that it is no folder any more, `unseen`
    has why a folder could not be looked into, by path, and `folders` how many there were.
    """

    parent: int
    name: str
    path: Path | None = None
    is_gone: bool = attrs.field(default=False, init=False)
    unseen: dict[str, str] = attrs.field(factory=dict, init=False)
    folders: int = attrs.field(default=0, init=False)

    @classmethod
    @contextmanager
    def at(cls, root: Path) -> Iterator[Tree]:
        """Open the tree with this root, for as long as the block runs."""
        if not _BY_DESCRIPTOR:
            yield cls(-1, root.name, root)
            return
        parent = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield cls(parent, root.name, root)
        finally:
            os.close(parent)

    @contextmanager
    def below(self, folder: str) -> Iterator[Tree]:
        """Open a folder of it as a tree, for as long as the block runs; it is made, and links to it are followed.

        Raises OSError, LedOutError: it cannot be made there.
        """
        folder = self.led(folder)
        if not folder:
            yield self
            return
        above, _, name = folder.rpartition("/")
        # Only made here: a tree is opened by its name in the folder above it.
        os.close(self._open(folder, make=True))
        with self._opened(above) as parent:
            yield Tree(parent, name, None if self.path is None else self.path / folder)

    def walk(self, but: str | None = GIT, most_folders: float = math.inf) -> Iterator[Entry]:
        """Yield all entries but Git's own; two descriptors are open at a time, however deep the tree is.

        It ends early where there are more than `most_folders`.
        """
        waiting = [""]
        while waiting and self.folders <= most_folders:
            folder = waiting.pop()
            try:
                yield from self._entries(folder, waiting, but, most_folders)
            except (FileNotFoundError, NotADirectoryError):  # a folder that was removed just now
                self.is_gone = self.is_gone or not folder
            except OSError as error:
                self.unseen[folder] = error.strerror or str(error)

    def is_hidden(self, path: str) -> bool:
        """Return whether a folder on the way to a path could not be looked into."""
        folders = ("", *(path[:at] for at, character in enumerate(path) if character == "/"))
        return any(folder in self.unseen for folder in folders)

    @contextmanager
    def find(self, path: str) -> Iterator[Entry]:
        """Yield the entry with a path, as it is now. Raises OSError: it cannot be looked at."""
        folder, _, name = path.rpartition("/")
        with self._opened(folder) as descriptor:
            # An empty path is the root of the tree.
            yield Entry(path, os.stat(name or ".", dir_fd=descriptor, follow_symlinks=False), descriptor)

    def led(self, path: str) -> str:
        """Return the path without links to which a path leads, whose last steps may be missing.

        Raises:
            LedOutError: it leads out of the tree.
            OSError: links lead to each other, or a folder on the way cannot be looked into.
        """
        waiting, done, links, steps, target = path.split("/")[::-1], list[str](), 0, 0, path
        while waiting:
            step, steps = waiting.pop(), steps + 1
            if step in ("", "."):
                continue
            if step == "..":
                if not done:
                    raise LedOutError(path, target)
                done.pop()
                continue
            leads = self._target("/".join(done), step)
            if leads is None:
                done.append(step)
                continue
            target = leads
            links += 1
            if links > _MOST_LINKS or steps > _MOST_STEPS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if os.path.isabs(target):
                if self.path is None or not Path(target).is_relative_to(self.path):
                    raise LedOutError(path, target)
                leads, done = str(Path(target).relative_to(self.path)), []
            waiting += leads.split("/")[::-1]
        return "/".join(done)

    def followed(self, path: str) -> AbstractContextManager[Entry]:
        """Yield the entry to which a path leads, through links within the tree. Raises OSError, LedOutError."""
        return self.find(self.led(path))

    def write(self, path: str, content: bytes, mode: int | None = None) -> None:
        """Write a file, and the folders that it is in, through links within the tree to these.

        What is in its place is replaced, a link too, as it may be another name of a file elsewhere. Without a `mode` it
        has that of any new file.

        Raises OSError, LedOutError: it cannot be written there.
        """
        if not _BY_DESCRIPTOR:
            target = Path(self.path or "", path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            return

        def written(folder: int, name: str) -> None:
            with os.fdopen(os.open(name, _NEW, 0o666, dir_fd=folder), "wb") as file:
                file.write(content)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)

        self._replace(path, written)

    def overwrite(self, path: str, content: bytes) -> None:
        """Write a file as `write`, with the mode that it has, and where a link in its place leads."""
        mode: int | None = None
        if _BY_DESCRIPTOR:
            path = self.led(path)
            with suppress(FileNotFoundError), self.followed(path) as entry:
                mode = stat.S_IMODE(entry.status.st_mode)
        self.write(path, content, mode)

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link as `write` makes a file."""
        self._replace(path, lambda folder, name: os.symlink(target, name, dir_fd=folder))

    def remove(self, name: str) -> None:
        """Remove what is at a name in the tree's root, if anything is: a link itself. Raises OSError."""
        with self._opened("") as folder, suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def _replace(self, path: str, make: Callable[[int, str], object]) -> None:
        above, _, name = str(PurePosixPath(path)).rpartition("/")
        try:
            led = self.led(above)
        except LedOutError as error:
            raise LedOutError(path, error.target) from error
        with self._opened(led, make=True) as folder:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            make(folder, name)

    def _target(self, folder: str, name: str) -> str | None:
        """Return where a link leads; `None` of what is none."""
        try:
            with self._opened(folder) as descriptor:
                return os.readlink(name, dir_fd=descriptor)
        except OSError as error:
            # EINVAL is the answer for what is no link; what is missing may be made later.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EINVAL):
                raise
            return None

    def _entries(self, folder: str, waiting: list[str], but: str | None, most_folders: float) -> Iterator[Entry]:
        with self._opened(folder) as descriptor, os.scandir(descriptor) as listing:
            for found in listing:
                if self.folders > most_folders:
                    return
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
                elif found.name != but:
                    self.folders += 1
                    waiting.append(path)

    @contextmanager
    def _opened(self, folder: str, *, make: bool = False) -> Iterator[int]:
        """Open a folder as `_open` does, for as long as the block runs."""
        descriptor = self._open(folder, make=make)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, folder: str, *, make: bool = False) -> int:
        """Open a folder step by step, so that no link on the way is followed. Raises OSError."""
        descriptor = os.open(self.name, _FOLDER, dir_fd=self.parent)
        steps = folder.split("/") if folder else []
        if len(steps) > DEEPEST:
            os.close(descriptor)
            raise OSError(errno.ENAMETOOLONG, f"it lies deeper than {DEEPEST} folders", folder)
        for step in steps:
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, dir_fd=descriptor)
                following = os.open(step, _FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = following
        return descriptor
