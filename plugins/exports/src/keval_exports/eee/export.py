"""Writing a run as Every Eval Ever files: the rows as they are read, then the aggregates over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from io import BufferedWriter
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import orjson

from keval import Run, RunError, Summary, Trial
from keval.plugin import Exported, dump
from keval_exports.eee.results import Record, aggregate, results
from keval_exports.eee.rows import row, trial_part
from keval_exports.files import exported_file

_LINE_BREAKS = {char.encode(): f"\\u{ord(char):04x}".encode() for char in "\x85\u2028\u2029"}
"""What Unicode takes for line breaks, as readers may that split text into lines; JSON need not escape it."""


def _share(exporter: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value <= 1:  # which nan is not, either
        raise ValueError(f"'threshold' must be a share from 0 to 1: {value}")


@attrs.frozen
class Eee:
    """Writes an aggregate file for every agent of a run, and beside it a file of instances with one row per score.

    A row is a score with a value that counts in a mean. `threshold` is the share of its scale from which on a score
    counts as correct.
    """

    threshold: float = attrs.field(
        default=0.5,
        validator=_share,
        metadata={"help": "The share of its scale from which on a score counts as correct."},
    )

    def export(self, run: Run, to: Path) -> Exported:
        """Write the files in place of those of an earlier export.

        Raises:
            RunError: the run is damaged, none of its scores has a value, or the folder cannot be written.
        """
        manifest, summary, threshold = run.manifest, run.summary(), self.threshold
        records = {agent: Record.of(manifest, agent) for agent in manifest.agents}
        found = {agent: results(manifest, summary, record, threshold) for agent, record in records.items()}
        told = {agent: record for agent, record in records.items() if found[agent]}
        if not told:
            raise RunError(f"{run.path} has no score with a value, so there is nothing to export; see `keval report`")
        with ExitStack() as stack:
            opened = {agent: exported_file(to / record.rows_path) for agent, record in told.items()}
            rows = {agent: _Rows(stack.enter_context(file)) for agent, file in opened.items()}
            _write_rows(run, told, rows, threshold)
        for agent, record in told.items():
            digest = rows[agent].digest.hexdigest()
            data = aggregate(manifest, record, found[agent], rows=rows[agent].count, checksum=digest)
            with exported_file(to / record.aggregate_path) as file:
                file.write(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
        files = [to / path for record in told.values() for path in (record.aggregate_path, record.rows_path)]
        return Exported(tuple(files), tuple(_left_out(summary, told)))


def _left_out(summary: Summary, told: Mapping[str, Record]) -> Iterator[str]:
    """Yield what is in no file, and why."""
    yield from (
        f"{agent} is left out: none of its scores has a value"
        for agent in dict.fromkeys(arm.agent for arm in summary.arms)
        if agent not in told
    )
    for arm in summary.arms:
        what = f"{arm.agent} {arm.condition} {arm.metric}{' by ' + arm.judge if arm.judge else ''}"
        if arm.agent in told and arm.mean is None:
            yield f"{what} is left out: it has no score that counts in a mean"
        elif arm.missing:
            yield f"{what} lacks {arm.missing} scores: scoring was interrupted"


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


def _write_rows(run: Run, records: Mapping[str, Record], rows: Mapping[str, _Rows], threshold: float) -> None:
    """Write every score to its agent's file, trial by trial."""
    manifest = run.manifest
    scorers = {entry.scorer: entry for entry in manifest.scorers}
    simulated = {label: judge.simulated for label, judge in manifest.judges.items()}
    counted = (line for line in run.scores() if not line.score.neutral or manifest.neutral == "count")
    for trial, lines in groupby(counted, key=lambda line: line.trial):
        part: dict[str, Any] = {}
        for line in lines:
            if line.score.value is None:
                continue
            # A trial is read once for all its scores, and not at all if none of them has a value.
            part = part or trial_part(records[line.agent], _trial(run, trial))
            by_simulated = line.judge is not None and simulated[line.judge]
            scored = row(part, line, line.score.value, scorers[line.scorer], threshold, simulated=by_simulated)
            rows[line.agent].write(scored)


def _trial(run: Run, id: str) -> Trial:
    try:
        return run.trial(id)
    except RunError as error:
        raise RunError(f"{error}; it has scores: restore the file") from error
