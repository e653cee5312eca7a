"""The check `sqlite`: what a query of a database returns."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import attrs
from attrs.validators import gt

from keval.plugin import EndOfTrial, Finding
from keval_checks.expected import shown
from keval_checks.left_files import MOST_BYTES, UnfitError, cannot_run, check_path, left, of_file, workspace_of

Row: TypeAlias = tuple[Any, ...]

# Not `-shm`, an index of the log that SQLite makes anew.
_SIDE_FILES = ("-wal", "-journal")
"""What SQLite keeps beside a database, of what is not in it yet, or must be taken back."""
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""How a journal ends that names another file, which SQLite reads and may remove (its "Database File Format", 3)."""
_MOST_BYTES = 2**30
"""Bytes of a database that is copied; an agent may write one that only seems to be as large as the disk."""
_STEPS = 10_000
"""Steps of SQLite's machine after which the time is looked at."""


@attrs.frozen
class SqliteCheck:
    """Passes if `query` returns exactly `rows` from the SQLite database `path` of the workspace.

    The order counts, unless `ordered` is false. A number is never equal to a text. The query runs on a copy, so that
    neither it nor SQLite changes anything.
    """

    needs_workspace: ClassVar[bool] = True

    path: str
    query: str
    rows: tuple[tuple[Any, ...], ...]
    ordered: bool = True
    timeout_seconds: float = attrs.field(default=10.0, validator=gt(0))

    def __attrs_post_init__(self) -> None:
        check_path("path", self.path)
        with closing(sqlite3.connect(":memory:")) as nothing:
            try:
                nothing.execute(f"EXPLAIN {self.query}")
            except sqlite3.Error as error:
                # Without the database, that a table or function is missing says nothing.
                if any(told in str(error) for told in ("syntax error", "incomplete", "unrecognized", "one statement")):
                    raise ValueError(f"'query' must be one query of SQLite: {error}") from error
        if len({len(row) for row in self.rows}) > 1:
            raise ValueError("'rows' must be lists of one length, a value for each column")

    async def check(self, end: EndOfTrial) -> Finding:
        """Ask the database; see `keval.plugin.Check`. Raises TrialError: the time is over."""
        return await asyncio.to_thread(self._found, end)

    def _found(self, end: EndOfTrial) -> Finding:
        try:
            folder = workspace_of(end)
            with left(folder, self.path) as entry:
                led = of_file(entry, self.path).path
            with tempfile.TemporaryDirectory(prefix="keval-check-") as own:
                for ending in ("", *_SIDE_FILES):
                    _copy(folder, led + ending, Path(own, f"database{ending}"))
                had = self._asked(Path(own, "database"))
        except UnfitError as unfit:
            return Finding(False, str(unfit))
        except OSError as error:
            raise cannot_run(f"{self.path} cannot be copied: {error.strerror}") from error
        fault = _fault(self.rows, had, self.ordered)
        rows = "row" if len(had) == 1 else "rows"
        return Finding(fault is None, fault or f"the query returns the {len(had):,} expected {rows}")

    def _asked(self, database: Path) -> Sequence[Row]:
        """Return the rows, and at most one too many. Raises UnfitError, TrialError."""
        until = time.monotonic() + self.timeout_seconds
        with closing(sqlite3.connect(database)) as connection:
            # The agent may have written views and triggers; none of them runs more than SQL, or for ever.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
            connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA query_only = ON")
                return connection.execute(self.query).fetchmany(len(self.rows) + 1)
            except sqlite3.OperationalError as error:
                if str(error) == "interrupted":
                    problem = f"the query was not done in {self.timeout_seconds:g} s"
                    raise cannot_run(problem, "timeout") from error
                raise UnfitError(f"{self.path} cannot be asked that: {error}") from error
            except sqlite3.Error as error:
                raise UnfitError(f"{self.path} is no database that can be read: {error}") from error


def _copy(folder: Path, path: str, to: Path) -> None:
    """Copy a database, or what is beside it, if it is there. Raises UnfitError, OSError."""
    with left(folder, path) as entry:
        if entry is None or entry.kind:
            return
        if entry.status.st_size > _MOST_BYTES:
            raise UnfitError(f"{path} has more than {_MOST_BYTES // 2**30} GiB")
        with to.open("w+b") as copy:
            entry.copy(copy)
            copy.seek(max(copy.tell() - len(_SUPER_JOURNAL), 0))
            if path.endswith("-journal") and copy.read() == _SUPER_JOURNAL:
                raise UnfitError(f"{path} names other files, which SQLite would open")


def _fault(expected: Sequence[Row], had: Sequence[Row], ordered: bool) -> str | None:
    """Return how the rows differ from those that are expected; `None` if they do not."""
    if ordered:
        for number, (wanted, row) in enumerate(zip(expected, had, strict=False), 1):
            if wanted != row:
                return f"row {number} is {_written(row)}, and not {_written(wanted)}"
    more = next((row for row in had if had.count(row) > expected.count(row)), None)
    less = next((row for row in expected if expected.count(row) > had.count(row)), None)
    told = [f"the row {_written(more)} is too much"] if more is not None else []
    told += [f"the row {_written(less)} is missing"] if less is not None else []
    return " and ".join(told) or None


def _written(row: Row) -> str:
    """Write a row as SQL does: a text in quotation marks, a number without."""
    values = ("NULL" if each is None else shown(each, 60) if isinstance(each, str) else repr(each) for each in row)
    return f"({', '.join(values)})"
