"""The table of runs: a row each, read again when its run was written to, filtered and sorted."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeAlias

import attrs

from keval import Run, RunError
from keval.plugin import Cost, Headline, ListedRun, total_cost
from keval_viewer.runs import Runs, Written, lines_in, written

__all__ = ["SORTS", "STATES", "Listing", "Query", "Row", "State"]

State: TypeAlias = Literal["running", "done", "interrupted", "failed"]
STATES: Sequence[State] = ("running", "done", "interrupted", "failed")

_PATIENCE = 0.15
"""Seconds for which a request reads runs that it does not know yet; the others follow."""
_FRESH = 0.5
"""Seconds for which the rows are not looked at again."""
_RECENT = 20
"""So many of the newest runs are looked at each time whether they are written to, and all others when they change."""


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
        parts = (self.run.id, self.evaluation, *self.agents, *self.conditions, *self.models, *self.labels, headline)
        return "\n".join(parts).lower()


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
        sort = parameters.get("sort", "")
        return cls(
            search=parameters.get("q", ""),
            evaluation=parameters.get("evaluation", ""),
            state=parameters.get("state", ""),
            sort=sort if sort.removeprefix("-") in SORTS else "-started",
        )

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
        known = sorted((row for row in newest if key(row) is not None), key=key, reverse=self.sort.startswith("-"))
        return [*known, *(row for row in newest if key(row) is None)]


@attrs.define
class Listing:
    """The rows of a results folder. `version` grows whenever one of them changes."""

    runs: Runs
    version: int = 0
    _rows: dict[Path, tuple[Written, Row]] = attrs.field(factory=dict, init=False)
    _counted: dict[Path, tuple[int, int]] = attrs.field(factory=dict, init=False)
    _unread: int = attrs.field(default=0, init=False)
    _looked: float = attrs.field(default=-math.inf, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def rows(self, patience: float = _PATIENCE) -> tuple[list[Row], int]:
        """Return all rows, newest first, and how many runs have none yet: new ones are read for `patience` seconds."""
        with self._lock:
            begun = time.monotonic()
            if begun - self._looked > _FRESH or self._unread:
                self._look(begun + patience)
                self._looked = time.monotonic()
            return [row for _, row in reversed(self._rows.values())], self._unread

    def _look(self, until: float) -> None:
        """Bring the rows up to date; after a point in time, runs without a row are left for the next time."""
        runs = self.runs.all()
        rows: dict[Path, tuple[Written, Row]] = {}
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
        if row.state != "running":
            self._counted.pop(run.path, None)
            return now, row
        return now, attrs.evolve(row, trials=self._count(run), failed=None)

    def _count(self, run: Run) -> int:
        """Count the finished trials of a running run: only what was added since the last time is read."""
        count, place = self._counted.get(run.path, (0, 0))
        try:
            if run.trials_file.stat().st_size < place:
                count = place = 0
            added, place = lines_in(run.trials_file, place)
        except OSError:
            return count
        self._counted[run.path] = (count + added, place)
        return count + added


def _row(run: Run, locked: bool) -> Row:
    """Read the row of a run."""
    try:
        manifest, summary = run.manifest, run.written_summary()
    except RunError as error:
        return Row(Run(run.path), run.path.parent.name, problem=str(error))
    listed = ListedRun(str(run.path), manifest, summary, locked)
    effect = listed.effect
    labels = {"play": manifest.play, "simulated": manifest.simulated, "replayed": manifest.replay}
    return Row(
        run=Run(run.path),  # another one: this one keeps its manifest
        evaluation=manifest.evaluation,
        state=_state(listed),
        started=manifest.started or "",
        labels=[name for name, applies in labels.items() if applies],
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


def _state(listed: ListedRun) -> State:
    if listed.state == "running":
        return "running"
    if listed.trials and listed.trials == listed.failed:
        return "failed"
    return "done" if listed.state == "done" else "interrupted"
