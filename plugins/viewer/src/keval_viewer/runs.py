"""The runs of a results folder: listed, and found by the names in a URL."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import attrs

from keval import KevalError, Run, RunError, Summary
from keval.plugin import Report

__all__ = ["Runs", "UnknownRunError", "Written", "lines_in", "read_ahead", "written"]

T = TypeVar("T")

_CHUNK = 1 << 20
_OPEN = 4
"""How many runs are kept open: each knows where its trials are and what its page is made from."""

_FILES = ("manifest.json", "summary.json", "trials.jsonl", "scores.jsonl", "samples.jsonl", "reviews.jsonl", "blobs")

Written: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""The files of a run as they were last written."""


class UnknownRunError(KevalError):
    """There is no such run in the folder that is served."""


@attrs.frozen
class _Kept:
    """A run as it was when it was opened, and what was derived from it."""

    written: Written
    run: Run
    derived: dict[str, Any] = attrs.field(factory=dict)
    lock: Lock = attrs.field(factory=Lock)


@attrs.define
class Runs:
    """All runs of a results folder. What was read of a run is kept until the run is written to."""

    root: Path
    _open: OrderedDict[Path, _Kept] = attrs.field(factory=OrderedDict, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def all(self) -> list[Run]:
        """Return every run, oldest first. A link is left out: it may lead anywhere. Raises RunError."""
        found = [
            Path(run.path)
            for evaluation in _folders(self.root)
            for run in _folders(evaluation.path)
            if _is_run(Path(run.path))
        ]
        return [Run(path) for path in sorted(found, key=lambda path: (path.name, path.parent.name))]

    def find(self, evaluation: str, run: str) -> Run:
        """Return a run by the names of its two folders. Raises UnknownRunError."""
        for folder in _folders(self.root):
            if folder.name == evaluation:
                for found in _folders(folder.path):
                    if found.name == run and _is_run(Path(found.path)):
                        return self._kept(Path(found.path)).run
        raise UnknownRunError(f"no run {run!r} of {evaluation!r} is under {self.root}")

    def report(self, run: Run) -> Report:
        """Return what the fragments of a run are made from. Raises RunError."""
        return self.derived(run, "report", lambda kept: Report(kept, _summary(kept)))

    def derived(self, run: Run, name: str, make: Callable[[Run], T]) -> T:
        """Return what `make` makes of a run, once until the run is written to. Raises what `make` raises."""
        kept = self._kept(run.path)
        with kept.lock:
            if name not in kept.derived:
                kept.derived[name] = make(kept.run)
            made: T = kept.derived[name]
            return made

    def _kept(self, path: Path) -> _Kept:
        """Return the run as it was opened last; one that was written to is opened again."""
        now = written(path)
        with self._lock:
            known = self._open.pop(path, None)
            if known is None or known.written != now:
                known = _Kept(now, Run(path))
            self._open[path] = known
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            return known


def lines_in(file: Path, start: int = 0) -> tuple[int, int]:
    """Count the lines of a file from a place on, and return the count and where the file ends now."""
    count = 0
    try:
        with file.open("rb") as opened:
            opened.seek(start)
            while chunk := opened.read(_CHUNK):
                count, start = count + chunk.count(b"\n"), start + len(chunk)
    except FileNotFoundError:
        return 0, 0
    return count, start


def read_ahead(run: Run) -> None:
    """Read where the trials and scores of a run are, so that the first page of a trial does not wait for it."""
    with suppress(RunError):  # who opens that page is told
        for key in run.known_trials[:1]:
            run.trial(key.id)
            run.scores_of(key.id)


def _summary(run: Run) -> Summary:
    """Return what a run found, as it was written down, or anew if there are other trials than it tells of."""
    written = run.written_summary()
    if written is not None and sum(arm.trials for arm in written.trials) == lines_in(run.trials_file)[0]:
        return written
    return run.summary()


def _folders(root: str | Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(root) as entries:
            yield from (entry for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{root} cannot be read: {error.strerror}; choose another results folder") from error


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run, of which no file is really elsewhere."""
    return (folder / "manifest.json").is_file() and not any((folder / name).is_symlink() for name in _FILES)


def written(folder: Path) -> Written:
    """Return what changes whenever a run is written to."""
    found: list[tuple[int, int, int] | None] = []
    for name in _FILES:
        try:
            status = (folder / name).stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
