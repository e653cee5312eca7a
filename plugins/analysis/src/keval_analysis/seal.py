"""The seal of a run: what its files had in them when it ended, so that a report can say that they changed since then.

It says nothing of who made the run: whoever changes a trial can change the manifest, which has the seal, as well.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from keval.files import read_kept, read_lines, unreadable
from keval.records.manifest import Manifest, SealEntry
from keval.store.run import Run

_LASTING = ("trials.jsonl", "scores.jsonl", "samples.jsonl")
SUMMARY = "summary.json"


@attrs.define
class _Digest:
    """The digest of lines in any order: a report does not read trials in the order of their file."""

    size: int = 0
    _sum: int = 0

    def add(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.size += len(line)
            self._sum += int(hashlib.sha256(line).hexdigest(), 16)

    @classmethod
    def of(cls, path: Path) -> _Digest:
        """Return that of a file. Raises RunError."""
        found = cls()
        if path.suffix == ".jsonl":
            found.add(read_lines(path, bytes))
            return found
        try:
            found.add([read_kept(path)])
        except OSError as error:
            raise unreadable(path, error) from error
        return found

    @property
    def entry(self) -> SealEntry:
        return SealEntry(self.size, f"{self._sum % (1 << 256):064x}")


def sealed(run: Run, manifest: Manifest) -> Manifest:
    """Return a manifest that says what the files of its run have in them; each is read once. Raises RunError."""
    paths = [path for name in (*_LASTING, SUMMARY) if (path := run.path / name).exists()]
    return attrs.evolve(manifest, sealed={path.name: _Digest.of(path).entry for path in paths})


def unsealed(run: Run) -> Manifest:
    """Return the manifest of a run that is locked, and about to be written to: without a seal, and with what changed.

    Raises RunError.
    """
    check = SealCheck(run)
    return attrs.evolve(check.run.manifest, sealed={}, changed=check.changed(names=_LASTING, locked=True))


class SealCheck:
    """Finds what changed in a run after it ended. What is read by its `run` is not read again for that."""

    def __init__(self, run: Run) -> None:
        self.run = attrs.evolve(run, noting=self._noting)
        self._read: dict[str, tuple[_Digest, ...]] = {}

    def _noting(self, name: str) -> Callable[[bytes], object]:
        """Return what is given each line that is read from now on; of earlier times, the longest is kept."""
        found = _Digest()
        self._read[name] = (*sorted(self._read.get(name, ()), key=lambda each: each.size)[-1:], found)
        return lambda line: found.add((line,))

    def changed(
        self,
        most_bytes: int | None = None,
        names: Collection[str] = (*_LASTING, SUMMARY),
        *,
        whole: bool = False,
        locked: bool = False,
    ) -> tuple[str, ...]:
        """Return the files that are not as they were; of one with more than `most_bytes`, only the size is looked at.

        With `whole`, trials and scores were read to their end: one that an index left out is missed, too.
        Those that had changed when the run was scored again or resumed are among them. Nothing is said of a run that is
        being written to, unless this process has it `locked`, or has no seal: it was killed, or is of an older version.
        Raises RunError.
        """
        manifest = self.run.manifest
        sealed = {name: entry for name, entry in manifest.sealed.items() if name in names}
        found = (
            [*self._broken(sealed, most_bytes, whole=whole)] if sealed and (locked or not self.run.is_locked) else []
        )
        return tuple(dict.fromkeys([*manifest.changed, *found]))

    def _broken(self, sealed: Mapping[str, SealEntry], most_bytes: int | None, *, whole: bool) -> Iterator[str]:
        for name, entry in sealed.items():
            path = self.run.path / name
            try:
                # Not through a link, which would be another file.
                size = os.lstat(path).st_size
            except FileNotFoundError:
                if name != SUMMARY:  # which may be removed, as it is made anew
                    yield name
                continue
            known = max(self._read.get(name, ()), key=lambda each: each.size, default=None)
            read = None if known is None else known.entry
            if size == entry.bytes and (read is None or (read.bytes != size and not whole)):
                read = _Digest.of(path).entry if most_bytes is None or size <= most_bytes else None
            if size != entry.bytes or (read is not None and read != entry):
                yield name
