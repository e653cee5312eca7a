"""A run as two tables, one of trials and one of scores, in CSV or Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import attrs

from keval import Run, RunError
from keval.plugin import Exported
from keval_exports.data_frames import SCORE_COLUMNS, TRIAL_COLUMNS, record_batch, score_row, trial_row
from keval_exports.files import exported_file

Row: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Mapping[str, str]
_MOST_ROWS = 10_000
_MOST_CHARACTERS = 8_000_000
"""Rows, and characters in them, that are held in memory before they are written to a Parquet file."""
_MARK = "'"
_FORMULAS = tuple("=+-@\t\r\n＝＋－＠")
"""How a text begins that spreadsheets take for a formula: OWASP, "CSV Injection"."""


@attrs.frozen
class Csv:
    """Writes trials.csv and scores.csv, in UTF-8 and by RFC 4180.

    Texts are quoted and numbers are not; what is unknown is empty without quotes. With `guard`, a text that a
    spreadsheet would take for a formula, or that begins with an apostrophe, has an apostrophe before it.
    """

    guard: bool = attrs.field(
        default=True,
        metadata={"help": "Put an apostrophe before texts that a spreadsheet would take for a formula."},
    )

    def export(self, run: Run, to: Path) -> Exported:
        """Write both tables row by row. Raises RunError: the run is damaged, or the folder cannot be written."""
        return _export(run, to, "csv", self._write)

    def _write(self, file: IO[bytes], rows: Iterable[Row], columns: Columns) -> None:
        file.write(",".join(columns).encode() + b"\r\n")
        for row in rows:
            line = ",".join([cell(row[name], guard=self.guard) for name in columns])
            file.write(line.encode("utf-8", "replace") + b"\r\n")


@attrs.frozen
class Parquet:
    """Writes trials.parquet and scores.parquet, compressed with Zstandard."""

    def export(self, run: Run, to: Path) -> Exported:
        """Write both tables in groups of rows.

        Raises:
            RunError: pyarrow is not installed, the run is damaged, or the folder cannot be written.
        """
        return _export(run, to, "parquet", self._write)

    def _write(self, file: IO[bytes], rows: Iterable[Row], columns: Columns) -> None:
        try:
            import pyarrow  # takes a tenth of a second to import
            from pyarrow import parquet
        except ImportError as error:
            from keval.plugin import missing_module

            raise RunError(f"Parquet files need {missing_module('pyarrow')}") from error
        schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for group in _groups(rows):
                writer.write_batch(record_batch(group, schema))


def _export(run: Run, to: Path, suffix: str, write: Callable[[IO[bytes], Iterable[Row], Columns], None]) -> Exported:
    trials, scores = to / f"trials.{suffix}", to / f"scores.{suffix}"
    # Both are in place when both are complete.
    with exported_file(trials) as of_trials, exported_file(scores) as of_scores:
        write(of_trials, map(trial_row, run.trials()), TRIAL_COLUMNS)
        write(of_scores, map(score_row, run.scores()), SCORE_COLUMNS)
    return Exported((trials, scores))


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows in lists that are neither too long nor too large."""
    group: list[Row] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(group) >= _MOST_ROWS or characters >= _MOST_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def cell(value: Any, *, guard: bool) -> str:
    """Return a value as a cell: a text in quotes, a number or truth value as it is, and nothing for `None`."""
    if value is None:
        return ""
    if isinstance(value, str):
        told = guarded(value) if guard else value
        return '"' + told.replace('"', '""') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def guarded(text: str) -> str:
    """Return a text with an apostrophe before it, if a spreadsheet would take it for a formula.

    A text that begins with an apostrophe has another one before it, so that the guard of every text can be undone.
    """
    return f"{_MARK}{text}" if text.startswith((*_FORMULAS, _MARK)) else text
