"""A database of finished runs, derived from their manifests and summaries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from keval.errors import RunError
from keval.records.manifest import Manifest
from keval.store.run import Run
from keval.store.serialization import dump
from keval_analysis.composition import parts_of
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.summary import ArmTrials, Cost, JudgingTotal, Summary
from keval_analysis.stats.contrasts import ablated

_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")

Row: TypeAlias = Mapping[str, Any]
"""The values of a row by column. It may have more, which are not kept."""

UNFINISHED, PLAY = "unfinished", "played"
"""Why a run is left out; or else it cannot be read, and the reason says how."""


@contextmanager
def open_history(runs: Iterable[Run]) -> Iterator[sqlite3.Connection]:
    """Make a database of these runs in memory, and hold it."""
    # Without an isolation level, `sqlite3` begins no transaction by itself.
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        database.executescript(_SCHEMA)
        for run in runs:
            _add(database, run)
        yield database


def write_history(database: sqlite3.Connection, path: Path) -> None:
    """Write a database to a file, in the place of what an earlier one had. Raises RunError."""
    try:
        with closing(sqlite3.connect(path)) as file:
            database.backup(file)
    except sqlite3.Error as error:
        raise RunError(f"{path} cannot be written: {error}") from error


def key_of(run: Run) -> str:
    """Return what a run is called in its history: the names of its two folders."""
    return f"{run.path.parent.name}/{run.path.name}"


def _add(database: sqlite3.Connection, run: Run) -> None:
    name = key_of(run)
    database.execute("SAVEPOINT one")
    try:
        _insert(database, finished_rows(run, name))
    # Files of others may have what no column takes: a missing value, a larger integer, text that is not UTF-8.
    except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
        database.execute("ROLLBACK TO one")
        _insert(database, left_out(name, f"{run.path} is damaged: {error}; `keval score` makes its summary anew"))
    database.execute("RELEASE one")


def _insert(database: sqlite3.Connection, tables: Mapping[str, Iterable[Row]]) -> None:
    for table, rows in tables.items():
        columns = [column for _, column, *_ in database.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(f":{column}" for column in columns)
        # Both names are of our own schema.
        database.executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # noqa: S608


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
