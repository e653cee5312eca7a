"""How a workspace was when the agent began, and is when it has ended: what has changed, as text, and the files to keep.

The start is every file with its mode and content, kept out of the agent's reach.
"""

from __future__ import annotations

import mimetypes
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import BinaryIO, Literal, TypeAlias

import attrs

from keval.records.end_state import Artifact, EndState, FileChange
from keval.records.transcript import Blob
from keval_programs.tree import GIT, Entry, Tree
from keval_workspace.copying import Limits
from keval_workspace.difference import Version, difference, quoted


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
            # With a gap in the start, nobody could tell later what has changed there.
            for path, why in tree.unseen.items():
                raise OSError(f"{path or 'the folder'} cannot be read: {why}")
            # `os.pread` reads the file itself, past the buffer of Python.
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


ChangeKind: TypeAlias = Literal["added", "changed", "deleted"]

_MOST_ADDED = 10_000
_MOST_ARTIFACTS = 1_000
_MOST_NAMED = 5
_DIFF_SHARE = 16
"""How many times `max_diff_bytes` is read for the diff, of which most may then be cut off."""


@attrs.frozen
class Keeping:
    """What is kept of an end: the globs of artifacts, and the most bytes of these together and of the diff."""

    artifacts: Sequence[str]
    artifact_bytes: int
    diff_bytes: int


@attrs.define
class End:
    """Compares a tree with its start. Nothing that an agent may have done to the tree raises an error."""

    tree: Tree
    start: Start
    keeping: Keeping
    changes: dict[str, ChangeKind] = attrs.field(factory=dict, init=False)
    unlisted: int = attrs.field(default=0, init=False)
    kept: list[str] = attrs.field(factory=list, init=False)
    blobs: list[Blob] = attrs.field(factory=list, init=False)
    notes: list[str] = attrs.field(factory=list, init=False)

    def state(self) -> EndState:
        """Return the end; `blobs` then has the content of artifacts."""
        self._walk()
        changes = sorted(self.changes.items())
        diff, cut = self._diff([path for path, _ in changes])
        artifacts = tuple(self._artifacts())
        return EndState(
            changes=tuple(FileChange(quoted(path), kind) for path, kind in changes),
            changes_cut=self.unlisted,
            diff=diff,
            diff_cut=cut,
            artifacts=artifacts,
            notes=tuple(self.notes),
        )

    def _walk(self) -> None:
        """Note what has become of each entry. What cannot be looked at counts as changed."""
        gone, artifacts, added = dict.fromkeys(self.start.files), 0, 0
        patterns = {pattern: pattern.split("/") for pattern in self.keeping.artifacts}
        unmatched = set(patterns)
        for entry in self.tree.walk():
            if entry.path in gone:
                del gone[entry.path]
                try:
                    if not self.start.holds(entry):
                        self.changes[entry.path] = "changed"
                except OSError as error:
                    self.changes[entry.path] = "changed"
                    self.tree.unseen[entry.path] = error.strerror or str(error)
            elif added < _MOST_ADDED:
                self.changes[entry.path] = "added"
                added += 1
            else:
                self.unlisted += 1
            names = entry.path.split("/")
            if matched := {pattern for pattern, wanted in patterns.items() if _matches(names, wanted)}:
                unmatched -= matched
                artifacts += 1
                if artifacts <= _MOST_ARTIFACTS:
                    self.kept.append(entry.path)
        for path in gone:
            self.changes[path] = "changed" if self.tree.is_hidden(path) else "deleted"
        if self.tree.unseen:
            why = [f"{quoted(path) or 'the folder'}: {why}" for path, why in sorted(self.tree.unseen.items())]
            self._note(why, "could not be read; what was there before counts as changed")
        if self.tree.is_gone:
            self.notes.append("the workspace itself was removed, or replaced by what is no folder")
        if self.unlisted:
            self.notes.append(f"{self.unlisted:,} more files were added, which are not listed")
        if artifacts > _MOST_ARTIFACTS:
            self.notes.append(f"{artifacts - _MOST_ARTIFACTS:,} more files match `artifacts` and are not kept")
        self.notes += [f"no file matches {pattern!r} of `artifacts`" for pattern in sorted(unmatched)]

    def _diff(self, paths: Sequence[str]) -> tuple[str, int]:
        """Return the difference of files, and how many characters of it are left out."""
        found, left, unread = list[str](), _DIFF_SHARE * self.keeping.diff_bytes, list[str]()
        for path in paths:
            if left <= 0:
                unread.append(quoted(path))
                continue
            noted, new = self.start.files.get(path), self._after(path)
            old = None if noted is None else Version(noted.mode, self.start.content(path))
            if (old, new) != (None, None):
                found.append(difference(path, old, new))
                # Plus one, as a million empty files would otherwise be read.
                left -= sum(len(version.content or b"") for version in (old, new) if version is not None) + 1
        if unread:
            self._note(unread, "are not in the diff, which would be too long")
        diff = "".join(found)
        encoded = diff.encode("utf-8", "replace")
        if len(encoded) <= self.keeping.diff_bytes:
            return diff, 0
        shown = encoded[: self.keeping.diff_bytes].decode("utf-8", "ignore")
        # A patch that ends within a line can be applied by nobody.
        shown = shown[: shown.rfind("\n") + 1]
        return shown, len(diff) - len(shown)

    def _after(self, path: str) -> Version | None:
        """Return a file as it is; `None` if it is not there, one without content if it cannot be read."""
        mode = self.start.files[path].mode if path in self.start.files else 0
        try:
            with self.tree.find(path) as entry:
                mode = entry.status.st_mode
                return None if stat.S_ISDIR(mode) else Version(mode, entry.content(self.keeping.diff_bytes))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return Version(mode, None)

    def _artifacts(self) -> Iterator[Artifact]:
        """Read the files that are artifacts, as far as they fit. They are in the order of their paths."""
        left = self.keeping.artifact_bytes
        for path in sorted(self.kept):
            media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
            artifact = Artifact(quoted(path), 0, media_type)
            try:
                with self.tree.find(path) as entry:
                    artifact = attrs.evolve(artifact, size=entry.status.st_size)
                    content = entry.content(left) if stat.S_ISREG(entry.status.st_mode) else None
                if content is not None:
                    blob = Blob.of(content, media_type)
                    self.blobs.append(blob)
                    left -= len(content)
                    artifact = attrs.evolve(artifact, sha256=blob.sha256)
                else:
                    artifact = attrs.evolve(artifact, left_out=self._why_not(entry.status))
            except OSError as error:
                artifact = attrs.evolve(artifact, left_out=f"it cannot be read: {error.strerror or error}")
            yield artifact

    def _why_not(self, status: os.stat_result) -> str:
        if stat.S_ISLNK(status.st_mode):
            return "it is a link, which is not followed"
        if not stat.S_ISREG(status.st_mode):
            return "it is no regular file"
        return f"all artifacts together may have {self.keeping.artifact_bytes:,} bytes (`max_artifact_bytes`)"

    def _note(self, names: Sequence[str], what: str) -> None:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        self.notes.append(f"{', '.join(names[:_MOST_NAMED])}{more} {what}")


def _matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the names of a path match a pattern's; `**` stands for any number of them."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return any(_matches(names[skipped:], pattern[1:]) for skipped in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], pattern[0]) and _matches(names[1:], pattern[1:])


def check_pattern(pattern: str) -> str | None:
    """Return what is wrong with a glob of artifacts, if anything."""
    names = pattern.split("/")
    if pattern.startswith("/") or ".." in names:
        return f"{pattern!r} leads out of the workspace; write it relative to the workspace, without `..`"
    if not pattern or "" in names or "." in names:
        return f"{pattern!r} matches no file; write a path or a pattern such as `out/*.json`, or `out/**` for all in it"
    if GIT in names:
        return f"{pattern!r} names Git's own files, which are not kept"
    return None
