"""Spreadsheets of Excel as datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zipfile import BadZipFile

import attrs

from keval.errors import ConfigError, Problem
from keval.plugin import DatasetRequest, RawRecord, missing_module


@attrs.frozen
class Spreadsheet:
    """A sheet of an `.xlsx` file, the first without `sheet`: its header, and rows whose empty cells are left out."""

    sheet: str | None = None

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield the rows below the header; a formula has the value that was last computed."""
        path = str(request.path)
        try:
            import openpyxl  # an extra, which few need

            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        except ModuleNotFoundError as error:
            told = f"reading a spreadsheet needs {missing_module('keval-formats[xlsx]')}"
            raise ConfigError([Problem(path, told)]) from error
        except (BadZipFile, KeyError, ValueError) as error:
            raise ConfigError([Problem(path, f"no spreadsheet can be read: {error}")]) from error
        try:
            if self.sheet is not None and self.sheet not in book.sheetnames:
                told = f"no sheet {self.sheet!r}; it has {', '.join(book.sheetnames)}"
                raise ConfigError([Problem(path, told)])
            rows = book[self.sheet or book.sheetnames[0]].iter_rows(values_only=True)
            header = [_value(cell, as_text=True) for cell in next(rows, ())]
            if repeated := [name for index, name in enumerate(header) if name and name in header[:index]]:
                yield Problem(f"{path}:1", f"the column {repeated[0]!r} stands there twice; keep one")
                return
            for line, row in enumerate(rows, start=2):
                cells = zip(header, row, strict=False)
                record = {
                    name: _value(cell, name in request.text_keys) for name, cell in cells if name and cell is not None
                }
                if record:
                    yield from request.with_json(record, line)
        finally:
            book.close()


def _value(cell: Any, as_text: bool) -> Any:
    """Return a cell; of a day there is no time, and a whole number has no point, as a sheet shows them."""
    if hasattr(cell, "isoformat"):
        return cell.isoformat().removesuffix("T00:00:00")
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell) if (as_text and cell is not None) or not isinstance(cell, str | int | float | None) else cell
