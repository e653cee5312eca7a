"""Writing a run as Every Eval Ever files: the rows as they are read, then the aggregates over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BufferedWriter
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import orjson

from keval.errors import RunError
from keval.report.export.eee.aggregate import aggregate, results
from keval.report.export.eee.record import Record
from keval.report.export.eee.row import row, trial_part
from keval.report.export.exported import Exported
from keval.report.export.trial_index import TrialIndex
from keval.run.files import replacing
from keval.run.lines import dump
from keval.run.store import RunDirectory
from keval.stats.summary import is_current, summarise

__all__ = ["export_eee"]

_LINE_BREAKS = {char.encode(): f"\\u{ord(char):04x}".encode() for char in "\x85\u2028\u2029"}
"""What Unicode takes for line breaks, as readers may that split text into lines; JSON need not escape it."""


def export_eee(run: RunDirectory, folder: Path, threshold: float) -> Exported:
    """Write an aggregate and its rows for every agent of the run, in place of what was exported of it before.

    A row is a score with a value that counts in a mean. `threshold` is the share of its scale from which on a score
    is correct.

    Raises:
        RunError: the run is damaged, none of its scores has such a value, or the folder cannot be written.
    """
    manifest = run.manifest()
    summary = summarise(manifest, run.trials(), run.scores())
    records = {agent: Record.of(manifest, agent) for agent in manifest["agents"]}
    found = {agent: results(manifest, summary, record, threshold) for agent, record in records.items()}
    told = {agent: record for agent, record in records.items() if found[agent]}
    if not told:
        raise RunError(f"{run.path} has no score with a value, so there is nothing to export; see `keval report`")
    try:
        with ExitStack() as stack:
            rows = {agent: stack.enter_context(_rows(folder / record.rows_path)) for agent, record in told.items()}
            _write_rows(run, manifest, told, rows, threshold)
        for agent, record in told.items():
            digest = rows[agent].digest.hexdigest()
            data = aggregate(manifest, record, found[agent], rows=rows[agent].count, checksum=digest)
            with replacing(folder / record.aggregate_path) as file:
                file.write(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise RunError(f"the export cannot be written: {error}; choose another folder with --to") from error
    files = [folder / path for record in told.values() for path in (record.aggregate_path, record.rows_path)]
    return Exported(tuple(files), tuple(_left_out(summary, told)))


def _left_out(summary: Mapping[str, Any], told: Mapping[str, Record]) -> Iterator[str]:
    """What is in no file, and why."""
    yield from (
        f"{agent} is left out: none of its scores has a value"
        for agent in dict.fromkeys(arm["agent"] for arm in summary["arms"])
        if agent not in told
    )
    for arm in summary["arms"]:
        what = f"{arm['agent']} {arm['condition']} {arm['metric']}{' by ' + arm['judge'] if arm['judge'] else ''}"
        if arm["agent"] in told and arm["mean"] is None:
            yield f"{what} is left out: it has no score that counts in a mean"
        elif arm["missing"]:
            yield f"{what} lacks {arm['missing']} scores: scoring was interrupted"


@attrs.define
class _Rows:
    """An instance file that is being written."""

    _file: BufferedWriter
    count: int = attrs.field(default=0, init=False)
    digest: Any = attrs.field(factory=hashlib.sha256, init=False)

    def write(self, data: Mapping[str, Any]) -> None:
        line = dump(data) + b"\n"
        for char, escaped in _LINE_BREAKS.items():
            line = line.replace(char, escaped)
        self._file.write(line)
        self.digest.update(line)
        self.count += 1


def _write_rows(
    run: RunDirectory,
    manifest: Mapping[str, Any],
    records: Mapping[str, Record],
    rows: Mapping[str, _Rows],
    threshold: float,
) -> None:
    """Write every score to its agent's file, in the order of scores.jsonl, most of a trial's together."""
    trials = TrialIndex(run)
    scorers = {(entry["metric"], entry["judge"]): entry for entry in manifest["scorers"]}
    simulated = {label: judge["simulated"] for label, judge in manifest["judges"].items()}
    counted = (line for line in run.scores() if not line.score.neutral or manifest["neutral"] == "count")
    for trial, lines in groupby(counted, key=lambda line: line.trial):
        part: dict[str, Any] = {}
        for line in lines:
            if line.score.value is None or not is_current(line, scorers.get(line.scorer)):
                continue
            part = part or trial_part(records[line.agent], trials[trial])
            by_simulated = line.judge is not None and simulated[line.judge]
            scored = row(part, line, line.score.value, scorers[line.scorer], threshold, simulated=by_simulated)
            rows[line.agent].write(scored)


@contextmanager
def _rows(path: Path) -> Iterator[_Rows]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        yield _Rows(file)
