"""The SQLite file of a results directory: derived from its finished runs, and brought up to date before it is read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import attrs
import click

import keval
from keval.errors import RunError
from keval.files import open_kept
from keval.records.manifest import Manifest
from keval.store.run import Run
from keval.store.serialization import dump
from keval_analysis.composition import parts_of
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.summary import ArmTrials, Cost, JudgingTotal, Summary
from keval_analysis.stats.contrasts import ablated

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


Row: TypeAlias = Mapping[str, Any]
"""The values of a row by column. It may have more, which are not kept."""

UNFINISHED, PLAY = "unfinished", "played"
"""Why a run is left out; or else it cannot be read, and the reason says how."""


@contextmanager
def open_history(root: Path, runs: Iterable[Run]) -> Iterator[sqlite3.Connection]:
    """Open the history of these runs, which are those below `root`, brought up to date.

    Runs whose manifest.json and summary.json have not changed are not read again, if the file is as keval left it for
    this user: one that came with a results directory may say anything, and is made anew. Where the directory cannot be
    written to, the history is in memory only. Several processes may do so at once.

    Raises RunError: the file cannot be used.
    """
    path = root / FILE
    try:
        with ExitStack() as closing_last:
            with _kept(path) as is_own:
                # `None` is a history in memory, beside which any file may stay.
                if is_own is False:
                    _discard(path)
                place = ":memory:" if is_own is None else str(path)
                database = closing_last.enter_context(closing(_connect(place)))
                database.row_factory = sqlite3.Row
                _prepare(database)
                _update(database, {key_of(run): run for run in runs})
            database.execute("BEGIN")  # all queries see one state, whatever others write
            yield database
    except (sqlite3.Error, OSError) as error:
        raise RunError(f"{path} cannot be used: {error}; remove it, as it is made anew from the runs") from error


def _connect(place: str) -> sqlite3.Connection:
    # Without an isolation level, `sqlite3` begins no transaction by itself.
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
        # A write lock from the beginning, for which others wait.
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
                # Something else than a database is somebody's own file: it stays, and SQLite refuses it.
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
            # `executescript` would commit the transaction first.
            for statement in _SCHEMA.split(";\n"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {_VERSION}")
        database.execute("COMMIT")
    # Off by default, and ignored within a transaction; rows of all tables are deleted with their run.
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
        # An interruption as well: a batch is written as a whole or not at all.
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")


def _renew(database: sqlite3.Connection, name: str, run: Run | None) -> None:
    """Put the rows of a run in the place of those that it had."""
    for table in ("runs", "left_out", "files"):
        # A name of a table cannot be a parameter; these are our own.
        database.execute(f"DELETE FROM {table} WHERE run = ?", (name,))  # noqa: S608
    if run is None:
        return
    written = _written(run)  # first, as the run may change while it is read
    found = finished_rows(Run(run.path), name)  # another object: it keeps its manifest
    database.execute("SAVEPOINT one")
    try:
        _insert(database, found)
    # Files of others may have what no column takes: a missing value, a larger integer, text that is not UTF-8.
    except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
        database.execute("ROLLBACK TO one")
        _insert(database, left_out(name, f"{run.path} is damaged: {error}; `keval score` makes its summary anew"))
    database.execute("RELEASE one")
    database.execute("INSERT INTO files VALUES (?, ?)", (name, written))


def _insert(database: sqlite3.Connection, tables: Mapping[str, Iterable[Row]]) -> None:
    for table, rows in tables.items():
        columns = [column for _, column, *_ in database.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(f":{column}" for column in columns)
        # Both names are of our own schema.
        database.executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # noqa: S608


def _written(run: Run) -> str:
    """Return what changes whenever the files that a history is derived from are written."""
    states = []
    for name in ("manifest.json", "summary.json"):
        try:
            status = (run.path / name).stat()
            # Size and time, as every command that opens a history looks at each run.
            states.append(f"{status.st_size}@{status.st_mtime_ns}")
        except OSError:
            states.append("-")
    return " ".join(states)


def finished_rows(run: Run, name: str) -> Mapping[str, Iterable[Row]]:
    """Return the rows of a finished run by table, or the row that says why a run is left out."""
    try:
        manifest, summary = run.manifest, run.written_summary()
    except RunError as error:
        return left_out(name, str(error))
    if manifest.play:
        return left_out(name, PLAY)
    if summary is None or summary.unfinished or any(arm.missing for arm in summary.arms):
        return left_out(name, UNFINISHED)
    tables = {
        "runs": [_run(run, manifest, summary)],
        "arms": _arms(manifest, summary),
        "judging": map(_used, summary.judging),
        "scorers": _scorers(summary),
        "scores": map(_fields, summary.arms),
        "effects": _effects(summary.effects, [(each.kind, each.effects) for each in summary.contrasts]),
        "expenses": _effects(summary.expenses, [(each.kind, each.expenses) for each in summary.contrasts]),
        "gates": map(_fields, summary.gates),
        "servers": (
            {"condition": label, "server": name, "tools": _json(server.tools), "sha256": server.sha256}
            for label, entry in manifest.conditions.items()
            for name, server in entry.servers.items()
        ),
        "parts": (
            {"position": position, "kind": kind, "name": name, "value": value}
            for position, (kind, of) in enumerate(parts_of(manifest).items())
            for name, value in of.items()
        ),
    }
    return {table: [{**row, "run": name} for row in rows] for table, rows in tables.items()}


def left_out(name: str, reason: str) -> Mapping[str, Iterable[Row]]:
    """Return the rows of a run that is left out, by table."""
    return {"left_out": [{"run": name, "reason": reason}]}


def _run(run: Run, manifest: Manifest, summary: Summary) -> Row:
    entries: list[ArmTrials | JudgingTotal] = [*summary.trials, *summary.judging]
    cost = sum((entry.cost for entry in entries), Cost())
    return {
        **_fields(manifest),
        "id": run.id,
        "dataset_sha256": manifest.dataset.sha256,
        "samples": manifest.dataset.samples,
        "selected": _json(manifest.selection),
        "repetitions": manifest.repetitions,
        "failed": sum(arm.failed for arm in summary.trials),
        "simulated": _json(manifest.simulated),
        "replay_of": manifest.replay and manifest.replay.run,
        "usd": cost.usd,
        "usd_unknown": cost.unknown,
    }


def _arms(manifest: Manifest, summary: Summary) -> Iterator[Row]:
    whole = {label: condition for condition, tools in ablated(manifest).items() for label in tools.values()}
    for arm in summary.trials:
        agent = manifest.agents.get(arm.agent)
        yield _used(arm, model=agent and agent.model, ablation_of=whole.get(arm.condition))


def _used(entry: ArmTrials | JudgingTotal, **more: Any) -> Row:
    """Return what trials or judgements of an arm took."""
    tokens = {name: getattr(entry.usage, name) for name in ("input_tokens", "output_tokens")}
    return {**_fields(entry), **tokens, "usd": entry.cost.usd, "usd_unknown": entry.cost.unknown, **more}


def _scorers(summary: Summary) -> Iterator[Row]:
    properties = {each.scorer for each in summary.properties}
    for position, entry in enumerate(summary.scorers):
        yield {
            **_fields(entry),
            **_fields(entry.scale),
            "position": position,
            "is_primary": entry.metric in summary.primary,
            "is_property": entry.scorer in properties,
        }


def _effects(effects: Iterable[Effect], contrasts: Iterable[tuple[str, Sequence[Effect]]]) -> Iterator[Row]:
    """Yield effects, and those of contrasts, which have a kind of their own."""
    for kind, of in ((None, effects), *contrasts):
        for effect in of:
            against = {"against_agent": effect.against.agent, "against_condition": effect.against.condition}
            yield {**_fields(effect), **against, "kind": kind or effect.kind}


def _fields(record: attrs.AttrsInstance) -> dict[str, Any]:
    return attrs.asdict(record, recurse=False)


def _json(value: Any) -> str:
    return dump(value).decode()
