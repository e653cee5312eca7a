"""How a workspace is when the agent has ended: what has changed, the difference as text, and the files to keep."""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import attrs

from keval.records.end_state import Artifact, EndState, FileChange
from keval.records.transcript import Blob
from keval_programs.tree import GIT, Tree
from keval_workspace.difference import Version, difference, quoted
from keval_workspace.start import Start

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
    changed: list[str] = attrs.field(factory=list, init=False)
    added: list[str] = attrs.field(factory=list, init=False)
    unlisted: int = attrs.field(default=0, init=False)
    kept: list[str] = attrs.field(factory=list, init=False)
    blobs: list[Blob] = attrs.field(factory=list, init=False)
    notes: list[str] = attrs.field(factory=list, init=False)

    def state(self) -> EndState:
        """Return the end; `blobs` then has the content of artifacts."""
        deleted = self._walk()
        by_kind: tuple[tuple[ChangeKind, list[str]], ...] = (
            ("added", self.added),
            ("changed", self.changed),
            ("deleted", deleted),
        )
        changes = sorted((path, kind) for kind, paths in by_kind for path in paths)
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

    def _walk(self) -> list[str]:
        """Sort all entries, and return the files that are gone. What cannot be looked at counts as changed."""
        gone, artifacts = dict.fromkeys(self.start.files), 0
        patterns = {pattern: pattern.split("/") for pattern in self.keeping.artifacts}
        unmatched = set(patterns)
        for entry in self.tree.walk():
            if entry.path in gone:
                del gone[entry.path]
                try:
                    if not self.start.holds(entry):
                        self.changed.append(entry.path)
                except OSError as error:
                    self.changed.append(entry.path)
                    self.tree.unseen[entry.path] = error.strerror or str(error)
            elif len(self.added) < _MOST_ADDED:
                self.added.append(entry.path)
            else:
                self.unlisted += 1
            names = entry.path.split("/")
            if matched := {pattern for pattern, wanted in patterns.items() if _matches(names, wanted)}:
                unmatched -= matched
                artifacts += 1
                if artifacts <= _MOST_ARTIFACTS:
                    self.kept.append(entry.path)
        hidden = [path for path in gone if self.tree.is_hidden(path)]
        self.changed += hidden
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
        return [path for path in gone if path not in set(hidden)]

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
                left -= sum(len(version.content or b"") for version in (old, new) if version is not None) + 1
        if unread:
            self._note(unread, "are not in the diff, which would be too long")
        diff = "".join(found)
        encoded = diff.encode("utf-8", "replace")
        if len(encoded) <= self.keeping.diff_bytes:
            return diff, 0
        shown = encoded[: self.keeping.diff_bytes].decode("utf-8", "ignore")
        shown = shown[: shown.rfind("\n") + 1]
        return shown, len(diff) - len(shown)

    def _after(self, path: str) -> Version | None:
        """Return a file as it is; `None` if it is not there, one without content if it cannot be read."""
        try:
            entry = self.tree.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return Version(self.start.files[path].mode if path in self.start.files else 0, None)
        try:
            if stat.S_ISDIR(entry.status.st_mode):
                return None
            return Version(entry.status.st_mode, entry.content(self.keeping.diff_bytes))
        except OSError:
            return Version(entry.status.st_mode, None)
        finally:
            os.close(entry.folder)

    def _artifacts(self) -> Iterator[Artifact]:
        """Read the files that are artifacts, as far as they fit. They are in the order of their paths."""
        left = self.keeping.artifact_bytes
        for path in sorted(self.kept):
            media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
            artifact = Artifact(quoted(path), 0, media_type)
            try:
                entry = self.tree.find(path)
                try:
                    artifact = attrs.evolve(artifact, size=entry.status.st_size)
                    content = entry.content(left) if stat.S_ISREG(entry.status.st_mode) else None
                finally:
                    os.close(entry.folder)
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
