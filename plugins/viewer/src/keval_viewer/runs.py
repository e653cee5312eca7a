"""The runs of a results folder: found by the names in a URL, and listed in a table that is filtered and sorted."""

from __future__ import annotations

import math
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeAlias, TypeVar

import attrs

from keval import KevalError, Run, RunError, Summary
from keval.seams.results import mirror_of
from keval.store.lock import fetch_run
from keval_analysis.findings.summary import Cost
from keval_analysis.readings import review_findings
from keval_analysis.seal import SealCheck
from keval_report.commands.list import Headline, ListedRun
from keval_report.report import Report
from keval_report.totals import total_cost

T = TypeVar("T")
_MOST_AT_ONCE = 1 << 26
"""Bytes of a file that are read to find out whether it was changed; of a larger one, that turns out as it is read."""
_OPEN = 4
"""How many runs are kept open: each knows where its trials are and what its page is made from."""
_FILES = (
    *("manifest.json", "summary.json", "trials.jsonl", "scores.jsonl", "samples.jsonl"),
    *("reviews.jsonl", "draws.jsonl", "blobs"),
)
Written: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""The files of a run as they were last written."""
State: TypeAlias = Literal["running", "done", "interrupted", "failed"]
STATES: Sequence[State] = ("running", "done", "interrupted", "failed")
_PATIENCE = 0.15
"""Seconds for which a request reads runs that it does not know yet; the others follow."""
_FRESH = 0.5
"""Seconds for which the rows are not looked at again."""
_RECENT = 20
"""So many of the newest runs are looked at each time whether they are written to, and all others when they change."""
SORTS: Mapping[str, Callable[[Row], Any]] = {
    "started": lambda row: row.run.id,
    "name": lambda row: (row.evaluation.lower(), row.run.id),
    "state": lambda row: row.state,
    "effect": lambda row: row.effect,
    "trials": lambda row: row.planned,
    "cost": lambda row: row.cost and row.cost.usd,
    "gates": lambda row: (row.gates.get("failed", 0), row.gates.get("undecided", 0)) if row.gates else None,
}
"""What a table of runs is sorted by; a row without it goes last."""


class UnknownRunError(KevalError):
    """There is no such run in the folder that is served."""


@attrs.frozen
class _Kept:
    """A run as it was when it was opened, and what was derived from it."""

    written: Written
    check: SealCheck
    derived: dict[str, Any] = attrs.field(factory=dict)
    lock: Lock = attrs.field(factory=Lock)

    @property
    def run(self) -> Run:
        return self.check.run


@attrs.define
class Runs:
    """All runs of a results folder. What was read of a run is kept until the run is written to."""

    root: Path
    _open: OrderedDict[Path, _Kept] = attrs.field(factory=OrderedDict, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def all(self) -> list[Run]:
        """Return every run, oldest first. A link is left out: it may lead anywhere. Raises RunError."""
        if mirror := mirror_of(self.root):
            mirror.find(self.root)
        found = [path for evaluation in _folders(self.root) for path in _runs_in(evaluation)]
        return [Run(path) for path in sorted(found, key=lambda path: (path.name, path.parent.name))]

    def find(self, evaluation: str, run: str) -> Run:
        """Return a run by the names of its two folders. Raises UnknownRunError."""
        named = (folder for folder in _folders(self.root) if folder.name == evaluation)
        for path in (path for folder in named for path in _runs_in(folder, run)):
            return self._kept(path).run
        raise UnknownRunError(f"no run {run!r} of {evaluation!r} is under {self.root}")

    def report(self, run: Run) -> Report:
        """Return what the fragments of a run are made from. Raises RunError."""
        check = self._kept(run.path).check
        return self.derived(
            run, "report", lambda kept: Report(kept, attrs.evolve(_summary(kept), changed=check.changed(_MOST_AT_ONCE)))
        )

    def late_changes(self, run: Run, report: Report) -> list[str]:
        """Return which files of a large run turn out to be others than when it ended, as all of them was read."""
        return [name for name in self._kept(run.path).check.changed(0) if name not in report.summary.changed]

    def derived(self, run: Run, name: str, make: Callable[[Run], T]) -> T:
        """Return what `make` makes of a run, once until the run is written to. Raises what `make` raises."""
        kept = self._kept(run.path)
        # A lock for each run: while a large one is read, pages of the others are answered.
        with kept.lock:
            if name not in kept.derived:
                kept.derived[name] = make(kept.run)
            made: T = kept.derived[name]
            return made

    def _kept(self, path: Path) -> _Kept:
        """Return the run as it was opened last; one that was written to is opened again."""
        fetch_run(path)
        now = written(path)
        with self._lock:
            # Taken out and put back, so that the one that was used last stands at the end.
            known = self._open.pop(path, None)
            if known is None or known.written != now:
                known = _Kept(now, SealCheck(Run(path)))
            self._open[path] = known
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            return known


def read_ahead(run: Run) -> None:
    """Read where the trials and scores of a run are, so that the first page of a trial does not wait for it."""
    # Who opens that page is told. An error here would close a connection on which the next request is under way.
    with suppress(RunError, OSError):
        for key in islice(run.known_trials, 1):
            run.trial(key.id)
            run.scores_of(key.id)


def _summary(run: Run) -> Summary:
    """Return what a run found, as it was written down, or anew if there are other trials than it tells of.

    What people's reviews come to is found anew if there are later ones.
    """
    written: Summary | None = run.written_summary()
    if written is None or sum(arm.trials for arm in written.trials) != run.count_trials():
        anew: Summary = run.summary()
        return anew
    reviews, summary = run.reviews_file.path, run.path / "summary.json"
    is_later = reviews.exists() and (not summary.exists() or reviews.stat().st_mtime_ns > summary.stat().st_mtime_ns)
    return attrs.evolve(written, reviews=review_findings(run)) if is_later else written


def _folders(root: str | Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(root) as entries:
            yield from (entry for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{root} cannot be read: {error.strerror}; choose another results folder") from error


def _runs_in(evaluation: os.DirEntry[str], name: str | None = None) -> Iterator[Path]:
    """Yield the runs in a folder, damaged or not, of which no file is really elsewhere; or only that of a name."""
    for folder in (Path(entry.path) for entry in _folders(evaluation.path) if name in (None, entry.name)):
        if os.path.lexists(folder / "manifest.json") and not any((folder / each).is_symlink() for each in _FILES):
            yield folder


def written(folder: Path, names: Sequence[str] = _FILES) -> Written:
    """Return what changes whenever these files of a run, by default all, are written to."""
    found: list[tuple[int, int, int] | None] = [None] * len(names)
    for place, name in enumerate(names):
        with suppress(OSError):
            status = (folder / name).stat()
            # With the inode, as files of a run are replaced, and a new one may have the size and time of the old one.
            found[place] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return tuple(found)


@attrs.frozen
class Row:
    """A run as it is listed. `trials`, `failed`, `headline` and `cost` are `None` until it was finished once.

    `state` is `failed` if no trial was answered. `gates` counts verdicts, and `labels` says what is
    special about the run. `problem` says why a run cannot be read; all
    else is empty then.
    """

    run: Run
    evaluation: str
    state: State | None = None
    started: str = ""
    labels: Sequence[str] = ()
    note: str = ""
    agents: Sequence[str] = ()
    conditions: Sequence[str] = ()
    models: Sequence[str] = ()
    planned: int | None = None
    trials: int | None = None
    failed: int | None = None
    elapsed: float | None = None
    headline: Headline | None = None
    effect: float | None = None
    cost: Cost | None = None
    gates: Mapping[str, int] = attrs.field(factory=dict)
    problem: str | None = None

    @property
    def text(self) -> str:
        """All that a search looks in, in lower case."""
        headline = self.headline.metric if self.headline else ""
        parts = (
            self.run.id,
            self.evaluation,
            *self.agents,
            *self.conditions,
            *self.models,
            *self.labels,
            self.note,
            headline,
        )
        return "\n".join(parts).lower()


@attrs.frozen
class Query:
    """Which runs are listed, and in which order: `sort` is a name of `SORTS`, with `-` in front for the largest first.

    Every word of `search` is in a run; `evaluation` and `state` are all runs' if they are empty.
    """

    search: str = ""
    evaluation: str = ""
    state: str = ""
    sort: str = "-started"

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Query:
        """Read a query from the parameters of a URL; an order that is not known is the usual one."""
        search, evaluation, state, sort = (parameters.get(name, "") for name in ("q", "evaluation", "state", "sort"))
        return cls(search, evaluation, state, sort if sort.removeprefix("-") in SORTS else "-started")

    @property
    def parameters(self) -> dict[str, str]:
        """The query as the parameters of a URL, without what is usual."""
        sort = "" if self.sort == "-started" else self.sort
        named = {"q": self.search, "evaluation": self.evaluation, "state": self.state, "sort": sort}
        return {name: value for name, value in named.items() if value}

    def chosen(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that are asked for, in their order."""
        words = self.search.lower().split()
        found = [
            row
            for row in rows
            if self.evaluation in ("", row.evaluation)
            and self.state in ("", row.state)
            and all(word in row.text for word in words)
        ]
        key = SORTS[self.sort.removeprefix("-")]
        newest = sorted(found, key=lambda row: row.run.id, reverse=True)
        # A stable sort, in both directions: equal rows stay with the newest first.
        known = sorted((row for row in newest if key(row) is not None), key=key, reverse=self.sort.startswith("-"))
        return [*known, *(row for row in newest if key(row) is None)]


@attrs.define
class Listing:
    """The rows of a results folder. `version` grows whenever one of them changes."""

    runs: Runs
    version: int = 0
    _rows: dict[Path, tuple[Written, Row]] = attrs.field(factory=dict, init=False)
    _unread: int = attrs.field(default=0, init=False)
    _looked: float = attrs.field(default=-math.inf, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def rows(self, patience: float = _PATIENCE) -> tuple[list[Row], int]:
        """Return all rows, newest first, and how many runs have none yet: new ones are read for `patience` seconds."""
        with self._lock:
            # Under the lock: one request reads, and others that come meanwhile take its rows.
            begun = time.monotonic()
            if begun - self._looked > _FRESH or self._unread:
                self._look(begun + patience)
                self._looked = time.monotonic()
            return [row for _, row in reversed(self._rows.values())], self._unread

    def _look(self, until: float) -> None:
        """Bring the rows up to date; after a point in time, runs without a row are left for the next time."""
        runs = self.runs.all()
        rows: dict[Path, tuple[Written, Row]] = {}
        # The newest first, as there may not be time for all.
        for number, run in enumerate(reversed(runs)):
            known = self._rows.get(run.path)
            if known is not None or time.monotonic() < until:
                rows[run.path] = self._renewed(run, known, recent=number < _RECENT)
        self._unread = len(runs) - len(rows)
        rows = dict(sorted(rows.items(), key=lambda item: (item[0].name, item[0].parent.name)))
        if [row for _, row in rows.values()] != [row for _, row in self._rows.values()]:
            self.version += 1
        self._rows = rows

    def _renewed(self, run: Run, known: tuple[Written, Row] | None, *, recent: bool) -> tuple[Written, Row]:
        """Read a run again if it was written to, or has begun or ended."""
        now = written(run.path)
        if known is not None and known[0] == now:
            row = known[1]
            if not (recent or row.state == "running") or run.is_locked == (row.state == "running"):
                return known
        row = _row(run, run.is_locked)
        if row.state == "running":
            # What was written down when the run last ended tells of a part of it.
            with suppress(RunError):  # the page of the run says what is wrong
                row = attrs.evolve(row, trials=run.count_trials(), failed=None)
        return now, row


def _row(run: Run, locked: bool) -> Row:
    try:
        manifest, summary = run.manifest, run.written_summary()
    except RunError as error:
        return Row(Run(run.path), run.path.parent.name, problem=str(error))
    listed = ListedRun(str(run.path), manifest, summary, locked)
    state: State = "interrupted" if listed.state == "unfinished" else listed.state
    effect = listed.effect
    if state != "running" and listed.trials and listed.trials == listed.failed:
        state = "failed"
    labels = {"play": manifest.play, "simulated": manifest.simulated, "replayed": manifest.replay}
    return Row(
        run=Run(run.path),  # another one: this one keeps its manifest
        evaluation=manifest.evaluation,
        state=state,
        started=manifest.started or "",
        labels=[name for name, applies in labels.items() if applies],
        note=manifest.note or "",
        agents=[*manifest.agents],
        conditions=[*manifest.conditions],
        models=[*dict.fromkeys(entry.model for entry in manifest.agents.values() if entry.model)],
        planned=manifest.trials,
        trials=listed.trials,
        failed=listed.failed,
        elapsed=manifest.elapsed,
        headline=listed.headline,
        effect=effect.difference if effect else None,
        cost=total_cost(summary) if summary else None,
        gates=Counter(gate.verdict for gate in summary.gates) if summary else {},
    )
