"""CSV files as datasets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import attrs

from keval.plugin import DatasetRequest, Problem, RawRecord


def _one_character(reader: object, attribute: attrs.Attribute[str], value: str) -> None:
    if len(value) != 1:
        raise ValueError(f"'{attribute.name}' must be one character: {value!r}")


@attrs.frozen
class Csv:
    """A table with a header. Cells of `turns`, `history`, `facts` and `metadata` are JSON; empty cells are left out."""

    delimiter: str = attrs.field(default=",", validator=_one_character)

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield the rows below the header."""
        path = request.path
        csv.field_size_limit(2**31 - 1)  # the default of 128 KiB refuses a long history
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read()  # whole, so that bytes that are not UTF-8 are an error of the file and not of a row
        # Without `strict`, a quotation mark that is never closed makes all that follows one cell.
        rows = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=self.delimiter)
        try:
            columns = rows.fieldnames or ()
            if repeated := [name for index, name in enumerate(columns) if name in columns[:index]]:
                yield Problem(f"{path}:1", f"the column {repeated[0]!r} stands there twice; keep one")
                return
            if len(columns) == 1 and (other := next((each for each in ";\t|" if each in columns[0]), None)):
                told = f"the header is one column; say what separates cells: `delimiter: {json.dumps(other)}`"
                yield Problem(f"{path}:1", f"{told} beside `path:`")
                return
            for row in rows:
                record: dict[str, Any] = {}
                for key, value in row.items():
                    # `DictReader` has surplus cells under `None`, and `None` in place of cells that are lacking.
                    if key is None or value is None:
                        told = "the row has not as many cells as the header; quote a cell that has the separator in it"
                        yield Problem(f"{path}:{rows.line_num}", told)
                        break
                    if value != "":
                        record[key] = value
                else:
                    yield from request.with_json(record, rows.line_num)
        except csv.Error as error:
            yield Problem(
                f"{path}:{rows.line_num}",
                f"not valid CSV: {error}; close each quotation mark, and double one within a cell",
            )
