"""A run as two tables, one of trials and one of scores, in CSV or Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import attrs

from keval import Run, RunError, ScoreLine, Trial
from keval.plugin import Exported, dump, missing_module
from keval_exports.files import exported_file

if TYPE_CHECKING:
    import pyarrow
    from pandas import DataFrame

Row: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Mapping[str, str]
TRIAL_COLUMNS: Mapping[str, str] = {
    "id": "string", "sample": "string", "agent": "string", "model": "string", "condition": "string",
    "repetition": "int64", "question": "string", "answer": "string", "output": "string", "failed": "bool",
    "failure": "string", "message": "string", "attempts": "int64", "complied": "bool", "duration": "float64",
    "model_calls": "int64", "tool_calls": "int64", "input_tokens": "int64", "output_tokens": "int64",
    "metadata": "string", "cached_tokens": "int64", "reasoning_tokens": "int64", "started": "float64",
    "instructions": "string", "asked": "string", "history": "string", "calls": "string", "truncated": "bool",
}  # fmt: skip
"""The columns of a table of trials, with the Arrow type of each."""
SCORE_COLUMNS: Mapping[str, str] = {
    "trial": "string", "sample": "string", "agent": "string", "condition": "string", "repetition": "int64",
    "metric": "string", "judge": "string", "judge_repetition": "int64", "value": "float64", "neutral": "bool",
    "reason": "string", "failure": "string", "details": "string", "message": "string",
    "unverified_claims": "string",
}  # fmt: skip
"""The columns of a table of scores, with the Arrow type of each."""


def trial_row(trial: Trial) -> dict[str, Any]:
    """Return a trial's values by column. Lists and mappings are JSON texts; what is unknown is `None`."""
    transcript, failure, sample = trial.transcript, trial.failure, trial.sample
    calls = None
    if transcript is not None and transcript.unlisted_calls is not None:
        calls = len(transcript.own_calls) + transcript.unlisted_calls
    return {
        **_fields(trial, "id", "agent", "model", "condition", "repetition", "question", "output", "complied"),
        **_fields(transcript, "duration", "model_calls", "started", "instructions"),
        **_fields(transcript and transcript.usage, "input_tokens", "output_tokens"),
        **_fields(transcript and transcript.usage, "cached_tokens", "reasoning_tokens"),
        "sample": sample.id,
        "answer": sample.answer,
        "failed": failure is not None,
        "failure": failure and failure.kind,
        "message": failure and failure.message,
        "attempts": len(trial.attempts) + 1,
        "tool_calls": calls,
        "metadata": _json(sample.metadata),
        "asked": _json(sample.asked),
        "history": _json(sample.history),
        "calls": transcript and _json(transcript.tool_calls),
        "truncated": trial.truncated,
    }


def score_row(line: ScoreLine) -> dict[str, Any]:
    """Return a score's values by column. Lists and mappings are JSON texts; what is unknown is `None`."""
    claims = line.judgement and line.judgement.unverified_claims
    return {
        **_fields(line, "trial", "sample", "agent", "condition", "repetition", "metric", "judge"),
        **_fields(line.score, "value", "neutral", "reason"),
        "judge_repetition": line.judgement and line.judgement.repetition,
        "failure": line.failure and line.failure.kind,
        "details": _json(line.score.details),
        "message": line.failure and line.failure.message,
        "unverified_claims": None if claims is None else _json(claims),
    }


def _fields(record: object, *names: str) -> dict[str, Any]:
    """Return the columns that have the names of a record's fields; without a record they are unknown."""
    return {name: None if record is None else getattr(record, name) for name in names}


def _json(value: Any) -> str:
    return dump(value).decode()


def arrow(run: Run, table: str) -> pyarrow.Table:
    """Return the trials or scores of a run as a table. Raises RunError: pyarrow is not installed."""
    if table == "trials":
        return _table(map(trial_row, run.trials()), TRIAL_COLUMNS)
    if table == "scores":
        return _table(map(score_row, run.scores()), SCORE_COLUMNS)
    raise RunError(f"a run has the tables 'trials' and 'scores', and no {table!r}")


def _table(rows: Iterable[Row], columns: Columns) -> pyarrow.Table:
    pyarrow, schema = _arrow_schema(columns, "tables")
    return pyarrow.Table.from_batches([record_batch(group, schema) for group in _groups(rows)], schema)


def _arrow_schema(columns: Columns, what: str) -> tuple[Any, pyarrow.Schema]:
    """Return pyarrow, and columns as its schema. Raises RunError: it is not installed, which `what` needs."""
    try:
        import pyarrow  # takes a tenth of a second to import
    except ImportError as error:
        raise RunError(f"{what} need {missing_module('pyarrow')}") from error
    return pyarrow, pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])


def record_batch(rows: Sequence[Mapping[str, Any]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Return rows of a table as an Arrow record batch. Raises RunError: a value is not of its column's type."""
    import pyarrow

    try:
        return pyarrow.RecordBatch.from_pylist([*rows], schema)
    except (pyarrow.ArrowException, OverflowError):
        # Row by row only now, to name the one that does not fit.
        for row in rows:
            try:
                pyarrow.RecordBatch.from_pylist([row], schema)
            except (pyarrow.ArrowException, OverflowError) as error:
                whose = f"the score of {row['trial']!r}" if "trial" in row else f"the trial {row['id']!r}"
                told = f"{whose} has a value that does not fit its column: {error}; correct its line in the run"
                raise RunError(told) from error
        raise


def pandas(run: Run, table: str) -> DataFrame:
    """Return the trials or scores of a run as a data frame. Raises RunError: pyarrow or pandas is not installed."""
    rows = arrow(run, table)
    try:
        import_module("pandas")  # pyarrow's own error would not say what to do
    except ImportError as error:
        raise RunError(f"data frames need {missing_module('pandas')}") from error
    return rows.to_pandas()


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
        default=True, metadata={"help": "Put an apostrophe before texts that a spreadsheet would take for a formula."}
    )

    def export(self, run: Run, to: Path) -> Exported:
        """Write both tables row by row. Raises RunError: the run is damaged, or the folder cannot be written."""
        return _export(run, to, "csv", self._write)

    def _write(self, file: IO[bytes], rows: Iterable[Row], columns: Columns) -> None:
        file.write(",".join(columns).encode() + b"\r\n")
        for row in rows:
            line = ",".join([cell(row[name], guard=self.guard) for name in columns])
            # An answer may have a lone surrogate, which UTF-8 cannot hold.
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
        _, schema = _arrow_schema(columns, "Parquet files")
        from pyarrow import parquet

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
