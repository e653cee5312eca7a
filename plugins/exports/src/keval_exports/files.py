"""The files of an export: written completely, in a folder that is made where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path

from keval import RunError
from keval.plugin import replacing


@contextmanager
def exported_file(path: Path) -> Iterator[BufferedWriter]:
    """Write a file in place of an earlier one, which stays if the export fails. Raises RunError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise RunError(f"the export cannot be written: {error}; choose another folder with --to") from error
