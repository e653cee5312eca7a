"""Reading a dataset: the reader of its format yields records, and each is checked; problems are reported together."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from sys import intern
from typing import Any

import attrs

from keval.config.evaluation import DatasetFile
from keval.config.structure import structure
from keval.dataset.samples import KNOWN_KEYS, Samples, sample_of
from keval.errors import ConfigError, PluginError, Problem
from keval.files import open_input
from keval.records.sample import Sample
from keval.seams import registry
from keval.seams.infrastructure import DatasetReader, DatasetRequest, RawRecord, RereadableDataset


@attrs.frozen
class Dataset:
    """The samples of a file, in its order, and the SHA-256 of its bytes.

    `expected` are the conditions that expectations of samples name, each with the first line that does.
    """

    path: Path | None
    samples: Samples
    digest: str
    _lines: Sequence[int] = ()
    expected: Mapping[str, int] = attrs.field(factory=dict)

    def place(self, position: int) -> str:
        """Return the file and line of a sample."""
        return f"{self.path}:{self._lines[position]}"


def read_dataset(file: DatasetFile) -> Dataset:
    """Check all samples. Raises ConfigError: unreadable, empty, broken records, missing questions, ids that repeat.

    A record has the question under `question_key`, the golden answer under `answer_key`, and may have `id`, `history`,
    `turns`, `facts`, `metadata` and `expect`; other keys become metadata. A record without an `id` gets one that is
    derived from its content without `expect`, which stays the same when lines are added or moved.
    """
    reader = _reader(file)
    request = DatasetRequest(file.path, text_keys=("id", file.answer_key), json_keys=KNOWN_KEYS[1:])
    checked = _Checked(file)
    try:
        with open_input(file.path) as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        rereadable = isinstance(reader, RereadableDataset)
        for record in reader.read(request):
            checked.add(record, keep=not rereadable)
    except (OSError, UnicodeDecodeError) as error:
        problem = f"the dataset cannot be read: {error}; see dataset.path"
        raise ConfigError([Problem(str(file.path), problem)]) from error
    if checked.problems:
        raise ConfigError(checked.problems)
    if not checked.ids:
        raise ConfigError([Problem(str(file.path), "the dataset is empty; add at least one question")])
    read: Callable[[int], Sample] = checked.samples.__getitem__
    if isinstance(reader, RereadableDataset):
        read = partial(_read_again, reader, request, file, checked.positions)
    return Dataset(file.path, Samples([*checked.ids], read), digest, array("Q", checked.ids.values()), checked.expected)


def _reader(file: DatasetFile) -> DatasetReader:
    """Construct the reader of the file's format. Raises ConfigError."""
    try:
        component = registry.find("keval.datasets", file.format)
        target = registry.load(component)
        if isinstance(target, type) and attrs.has(target):
            reader, errors = structure(target, dict(file.options), (), file.path.parent)
            if errors:
                raise ConfigError([Problem(str(file.path), error.message) for error in errors])
        else:
            reader = target()
    except PluginError as error:
        if file.type:
            raise ConfigError([Problem(str(file.path), str(error))]) from error
        known = ", ".join(f".{item.name}" for item in registry.components("keval.datasets"))
        told = f"a dataset is a file of one of the formats {known}; for another name, `dataset.type` says the format"
        raise ConfigError([Problem(str(file.path), told)]) from error
    if not isinstance(reader, DatasetReader):
        raise PluginError(f"{component.target} of {component.distribution} is no dataset reader: it has no read()")
    return reader


class _Checked:
    """Collects the samples of a file, or the positions to read them again, and its problems."""

    def __init__(self, file: DatasetFile) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.ids: dict[str, int] = {}
        self.samples: list[Sample] = []
        self.positions = array("Q")
        self.expected: dict[str, int] = {}

    def add(self, record: RawRecord | Problem, *, keep: bool) -> None:
        """Check a record and its id."""
        if isinstance(record, Problem):
            self.problems.append(record)
            return
        try:
            sample = sample_of(record.data, self.file)
            if sample.id in self.ids:
                how = "the id" if "id" in record.data else "the content, and so the derived id,"
                raise ValueError(f"{how} {sample.id!r} stands already in line {self.ids[sample.id]}")
        except (ValueError, RecursionError) as error:
            problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            self.problems.append(Problem(f"{self.file.path}:{record.line}", problem))
            return
        self.ids[intern(sample.id)] = record.line
        for label in (label for part in sample.expect for label in part.conditions):
            self.expected.setdefault(label, record.line)
        if keep or record.position is None:
            self.samples.append(sample)
        else:
            self.positions.append(record.position)


def _read_again(
    reader: RereadableDataset, request: DatasetRequest, file: DatasetFile, positions: Sequence[int], index: int
) -> Sample:
    data: Any = reader.read_again(request, positions[index])
    return sample_of(data, file)
