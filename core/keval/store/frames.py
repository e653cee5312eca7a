"""Trials and scores as Arrow tables: one row each, in columns of plain types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from keval.errors import RunError
from keval.records import Trial
from keval.scores import ScoreLine
from keval.store.rows import SCORE_COLUMNS, TRIAL_COLUMNS, score_row, trial_row

if TYPE_CHECKING:
    import pyarrow

__all__ = ["scores_table", "trials_table"]

_BATCH = 1_000


def trials_table(trials: Iterable[Trial]) -> pyarrow.Table:
    """Return trials as a table. Raises RunError when pyarrow is not installed."""
    return _table(map(trial_row, trials), TRIAL_COLUMNS)


def scores_table(scores: Iterable[ScoreLine]) -> pyarrow.Table:
    """Return scores as a table. Raises RunError when pyarrow is not installed."""
    return _table(map(score_row, scores), SCORE_COLUMNS)


def _table(rows: Iterator[Mapping[str, Any]], columns: Mapping[str, str]) -> pyarrow.Table:
    try:
        import pyarrow  # takes a tenth of a second to import
    except ImportError as error:
        raise RunError("tables need pyarrow: `pip install keval[frames]`") from error
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
    batches = [pyarrow.RecordBatch.from_pylist(batch, schema) for batch in _batches(rows)]
    return pyarrow.Table.from_batches(batches, schema)


def _batches(rows: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    while batch := [*islice(rows, _BATCH)]:
        yield batch
