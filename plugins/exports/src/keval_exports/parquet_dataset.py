"""Parquet files as datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keval.plugin import ConfigError, DatasetRequest, Problem, RawRecord


class Parquet:
    """A Parquet file with one record per row; nested columns are lists and structs, or JSON in a text."""

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield the rows. Raises ConfigError: pyarrow is not installed, or the file is not Parquet."""
        try:
            import pyarrow
            from pyarrow import parquet  # takes a third of a second to import
        except ImportError as error:
            from keval.plugin import missing_module

            problem = f"reading Parquet needs {missing_module('pyarrow')}"
            raise ConfigError([Problem(str(request.path), problem)]) from error
        try:
            with parquet.ParquetFile(request.path) as table:
                number = 0
                for batch in table.iter_batches():
                    for row in batch.to_pylist():
                        number += 1
                        yield from request.with_json(_without_nulls(row), number)
        except pyarrow.ArrowException as error:
            raise ConfigError([Problem(str(request.path), f"not valid Parquet: {error}")]) from error


def _without_nulls(value: Any) -> Any:
    """Leave out what is null: the structs of one column have all the keys of any row."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
