"""Datasets that are compressed, such as `questions.jsonl.gz`: what is in the file is read by its other suffix."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from keval.errors import ConfigError, Problem
from keval.seams import registry
from keval.seams.infrastructure import DatasetRequest, RawRecord


class Gzip:
    """A file of another format, compressed."""

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield the records, with the problems at their lines in what is compressed."""
        path = request.path
        reader = registry.load(registry.find("keval.datasets", Path(path.stem).suffix[1:]))()
        with TemporaryDirectory() as folder:
            inner = Path(folder) / path.stem
            try:
                with gzip.open(path) as packed, inner.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
                for record in reader.read(attrs.evolve(request, path=inner)):
                    yield _named(record, inner, path) if isinstance(record, Problem) else record
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ConfigError([Problem(str(path), f"not a whole gzip file: {error}")]) from error
            except ConfigError as error:
                raise ConfigError([_named(each, inner, path) for each in error.problems]) from error


def _named(problem: Problem, inner: Path, path: Path) -> Problem:
    return Problem(problem.place.replace(str(inner), str(path)), problem.message)
