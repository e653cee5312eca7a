"""The runs of a results folder: listed, and found by the names in a URL."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import attrs

from keval import KevalError, Run, RunError
from keval.frontend import ListedRun, Report, list_runs

__all__ = ["Runs", "UnknownRunError"]

_OPEN = 4
"""How many runs are kept open: each knows where its trials are and what its page is made from."""

_Written: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class UnknownRunError(KevalError):
    """There is no such run in the folder that is served."""


@attrs.define
class Runs:
    """All runs of a results folder. What was read of a run is kept until the run is written to."""

    root: Path
    _open: OrderedDict[Path, tuple[_Written, tuple[Run, list[Report]]]] = attrs.field(factory=OrderedDict, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def listed(self) -> Iterator[ListedRun | RunError]:
        """Yield every run, oldest first; one that cannot be read is its error."""
        for run in filter(self._is_inside, list_runs(self.root)):
            try:
                yield ListedRun(str(run.path), run.manifest, run.written_summary(), run.is_locked)
            except RunError as error:
                yield error

    def find(self, evaluation: str, run: str) -> Run:
        """Return a run by the names of its two folders. Raises UnknownRunError."""
        for found in list_runs(self.root):
            if (found.path.parent.name, found.path.name) == (evaluation, run) and self._is_inside(found):
                return self._kept(found)[0]
        raise UnknownRunError(f"no run {run!r} of {evaluation!r} is under {self.root}")

    def report(self, run: Run) -> Report:
        """Return what the fragments of a run are made from. Raises RunError."""
        kept, reports = self._kept(run)
        if not reports:
            reports.append(Report(kept, kept.written_summary() or kept.summary()))
        return reports[0]

    def version(self, run: Run) -> Hashable:
        """Return what changes whenever a run is written to."""
        return _written(run.path)

    def _is_inside(self, run: Run) -> bool:
        """Whether a run is really in the folder: a link may lead anywhere."""
        place = self.root.resolve() / run.path.parent.name / run.path.name
        return (run.path / "manifest.json").resolve() == place / "manifest.json"

    def _kept(self, run: Run) -> tuple[Run, list[Report]]:
        """Return the run as it was opened last, and its report if it was made; a run that was written to is opened."""
        written = _written(run.path)
        with self._lock:
            known = self._open.pop(run.path, None)
            if known is None or known[0] != written:
                known = (written, (Run(run.path), []))
            self._open[run.path] = known
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            return known[1]


def _written(folder: Path) -> _Written:
    """Return what changes whenever a run is written to."""
    found: list[tuple[int, int, int] | None] = []
    for name in ("manifest.json", "summary.json", "trials.jsonl", "scores.jsonl"):
        try:
            status = (folder / name).stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
