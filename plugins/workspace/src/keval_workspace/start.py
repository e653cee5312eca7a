"""How a workspace was when the agent began: every file with its mode and content, kept out of the agent's reach."""

from __future__ import annotations

import os
import stat
import tempfile
from hashlib import sha256
from typing import BinaryIO

import attrs

from keval_programs.tree import Entry, Tree
from keval_workspace.copying import Limits


@attrs.frozen
class NotedFile:
    """A file or link as it was. `kept` is where its fingerprint is kept, its first byte and its length."""

    mode: int
    size: int
    kept: tuple[int, int]


@attrs.frozen(eq=False)
class Start:
    """All files by path. `store` is a file without a name, which no other program can open or change.

    `most` is the size up to which the fingerprint is the whole content. Close the store when it is no longer needed.
    """

    files: dict[str, NotedFile]
    store: BinaryIO
    most: int

    @classmethod
    def of(cls, tree: Tree, limits: Limits, most: int) -> Start:
        """Note what is in a tree. Raises OSError: a file cannot be read, or kept. Raises TooLargeError."""
        store = tempfile.TemporaryFile()  # noqa: SIM115 - it is open for as long as the trial runs
        try:
            files, at, size = dict[str, NotedFile](), 0, 0
            for entry in tree.walk():
                size += entry.status.st_size
                limits.check(len(files) + 1, size)
                content = entry.fingerprint(most)
                store.write(content)
                files[entry.path] = NotedFile(entry.status.st_mode, entry.status.st_size, (at, len(content)))
                at += len(content)
            for path, why in tree.unseen.items():
                raise OSError(f"{path or 'the folder'} cannot be read: {why}")
            store.flush()
        except BaseException:
            store.close()
            raise
        return cls(files, store, most)

    def close(self) -> None:
        """Forget it."""
        self.store.close()

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return sum(noted.size for noted in self.files.values())

    def holds(self, entry: Entry) -> bool:
        """Return whether an entry is as it was: its kind, its mode and every byte. Raises OSError: it is unreadable."""
        noted = self.files[entry.path]
        same = (entry.status.st_mode, entry.status.st_size) == (noted.mode, noted.size)
        return same and entry.fingerprint(self.most) == self._fingerprint(noted)

    def content(self, path: str) -> bytes | None:
        """Return the content of a file as it was, or where a link led; `None` if that is not kept."""
        noted = self.files[path]
        whole = stat.S_ISLNK(noted.mode) or (stat.S_ISREG(noted.mode) and noted.size <= self.most)
        return self._fingerprint(noted) if whole else None

    def digest(self) -> str:
        """Return the SHA-256 of all paths, modes and contents."""
        found = sha256()
        for path, noted in sorted(self.files.items()):
            content = sha256(self._fingerprint(noted)).hexdigest()
            found.update(b"%b\0%o %d %b\0" % (os.fsencode(path), noted.mode, noted.size, content.encode()))
        return found.hexdigest()

    def _fingerprint(self, noted: NotedFile) -> bytes:
        at, length = noted.kept
        return os.pread(self.store.fileno(), length, at)
