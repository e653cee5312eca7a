"""The SQLite file of a results directory: derived from its finished runs, and brought up to date before it is read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from zlib import crc32

import click

import keval
from keval.errors import RunError
from keval.files import open_kept
from keval.store.run import Run
from keval_analysis.history.rows import Row, finished_rows, left_out

FILE = "history.sqlite"
"""The name of the file in the results directory."""
_NOTED = "histories.sqlite"
"""In the user's folder for keval: how it left each such file."""
_MAGIC = b"SQLite format 3\0"
_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
_VERSION = crc32(f"{keval.__version__} {_SCHEMA}".encode()) >> 1
"""A file that another version has made may lack something, and is made anew. SQLite keeps 31 bits and a sign."""
_WAIT_SECONDS = 60.0
"""How long to wait for another process that writes to the file."""
_BATCH = 50
"""Runs that are written in one transaction: others need not wait longer, and an interruption loses no more."""


@contextmanager
def open_history(root: Path, runs: Iterable[Run], *, rebuild: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the history of these runs, which are those below `root`, brought up to date or made anew.

    Runs whose manifest.json and summary.json have not changed are not read again, if the file is as keval left it for
    this user: one that came with a results directory may say anything, and is made anew. Where the directory cannot be
    written to, the history is in memory only. Several processes may do so at once.

    Raises RunError: the file cannot be used.
    """
    path = root / FILE
    try:
        with ExitStack() as closing_last:
            with _kept(path) as is_own:
                if is_own is False:
                    _discard(path)
                place = ":memory:" if is_own is None else str(path)
                database = closing_last.enter_context(closing(_connect(place)))
                database.row_factory = sqlite3.Row
                _prepare(database)
                if rebuild:  # run by run, so that others who read it lack none meanwhile
                    database.execute("UPDATE files SET written = ''")
                _update(database, {key_of(run): run for run in runs})
            database.execute("BEGIN")  # all queries see one state, whatever others write
            yield database
    except (sqlite3.Error, OSError) as error:
        raise RunError(f"{path} cannot be used: {error}; remove it, as it is made anew from the runs") from error


def _connect(place: str) -> sqlite3.Connection:
    return sqlite3.connect(place, timeout=_WAIT_SECONDS, isolation_level=None)


@contextmanager
def _kept(path: Path) -> Iterator[bool | None]:
    """Yield whether a file is as keval left it the last time, and note how the block leaves it.

    `None` if it cannot be written, or nothing noted. Others who do the same wait meanwhile. What is noted lies in the
    user's folder for keval, where no results directory brings anything.
    """
    folder, place = Path(click.get_app_dir("keval")), str(path.absolute())
    if not (os.access(path.parent, os.W_OK) and os.access(path if path.exists() else path.parent, os.W_OK)):
        yield None
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        noted = _connect(str(folder / _NOTED))
        noted.execute("CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, state TEXT)")
    except (OSError, sqlite3.Error):
        yield None
        return
    with closing(noted):
        noted.execute("BEGIN IMMEDIATE")
        before = noted.execute("SELECT state FROM files WHERE path = ?", (place,)).fetchone()
        yield before is not None and before[0] == _inode(path)
        if (now := _inode(path)) != (before and before[0]):
            noted.execute("INSERT OR REPLACE INTO files VALUES (?, ?)", (place, now))
        noted.execute("COMMIT")


def _discard(path: Path) -> None:
    """Remove a history that keval did not leave, with what SQLite would take up beside it, and no other file."""
    with suppress(FileNotFoundError):
        if not path.is_symlink():
            with open_kept(path) as file:
                if file.read(len(_MAGIC)) not in (b"", _MAGIC):
                    return
        path.unlink()
    for ending in ("-journal", "-wal", "-shm"):
        path.with_name(FILE + ending).unlink(missing_ok=True)


def _inode(path: Path) -> str | None:
    """Return what no copy of a file has, and what changes with every write to it; `None` if there is no file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def key_of(run: Run) -> str:
    """Return what a run is called in its history: the names of its two folders."""
    return f"{run.path.parent.name}/{run.path.name}"


def _prepare(database: sqlite3.Connection) -> None:
    """Make the tables, unless there are those of this version."""

    def is_current() -> bool:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        return bool(version == _VERSION)

    if not is_current():
        database.execute("BEGIN IMMEDIATE")
        if not is_current():  # another process may have made them meanwhile
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                database.execute(f'DROP TABLE "{name}"')
            for statement in _SCHEMA.split(";\n"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {_VERSION}")
        database.execute("COMMIT")
    database.execute("PRAGMA foreign_keys = ON")


def _update(database: sqlite3.Connection, runs: dict[str, Run]) -> None:
    """Read the runs that are new or have changed, and forget those that are gone."""
    known = dict(database.execute("SELECT run, written FROM files"))
    changed = [name for name, run in runs.items() if known.get(name) != _written(run)]
    gone = [name for name in known if name not in runs]
    stale = [*gone, *changed]
    for start in range(0, len(stale), _BATCH):
        database.execute("BEGIN IMMEDIATE")
        try:
            for name in stale[start : start + _BATCH]:
                _renew(database, name, runs.get(name))
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")


def _renew(database: sqlite3.Connection, name: str, run: Run | None) -> None:
    """Put the rows of a run in the place of those that it had."""
    for table in ("runs", "left_out", "files"):
        database.execute(f"DELETE FROM {table} WHERE run = ?", (name,))  # noqa: S608
    if run is None:
        return
    written = _written(run)  # first, as the run may change while it is read
    found = finished_rows(Run(run.path), name)  # another object: it keeps its manifest
    database.execute("SAVEPOINT one")
    try:
        _insert(database, found)
    except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
        database.execute("ROLLBACK TO one")
        _insert(database, left_out(name, f"{run.path} is damaged: {error}; `keval score` makes its summary anew"))
    database.execute("RELEASE one")
    database.execute("INSERT INTO files VALUES (?, ?)", (name, written))


def _insert(database: sqlite3.Connection, tables: Mapping[str, Iterable[Row]]) -> None:
    for table, rows in tables.items():
        columns = [column for _, column, *_ in database.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(f":{column}" for column in columns)
        database.executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # noqa: S608


def _written(run: Run) -> str:
    """Return what changes whenever the files that a history is derived from are written."""
    states = []
    for name in ("manifest.json", "summary.json"):
        try:
            status = (run.path / name).stat()
            states.append(f"{status.st_size}@{status.st_mtime_ns}")
        except OSError:
            states.append("-")
    return " ".join(states)
