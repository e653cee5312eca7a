"""Reading a dataset: the reader of its format yields records, and each is checked; problems are reported together."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from keval.config.evaluation import DatasetFile
from keval.config.structure import structure
from keval.dataset.samples import KNOWN_KEYS, Samples, sample_of
from keval.errors import ConfigError, PluginError, Problem
from keval.files import open_input
from keval.records.trial import Sample
from keval.seams import registry
from keval.seams.infrastructure import DatasetReader, DatasetRequest, RereadableDataset
from keval.seams.remedies import unread


@attrs.frozen
class Dataset:
    """The samples of a file, in its order, and the SHA-256 of its bytes.

    `expected` are the conditions that expectations of samples name, each with the first line that does. `waiting` are
    the questions that are no samples until a person accepts them. `checks` are the names of the checks that samples
    have of their own, and `workspaces` says whether any has a workspace of its own.
    """

    path: Path | None
    samples: Samples
    digest: str
    _lines: Sequence[int] = ()
    expected: Mapping[str, int] = attrs.field(factory=dict)
    waiting: int = 0
    checks: tuple[str, ...] = ()
    workspaces: bool = False

    def place(self, sample: str) -> str:
        """Return the file and line of a sample, by its id."""
        return f"{self.path}:{self._lines[self.samples.positions[sample]]}" if self._lines else str(self.path)


NO_DATASET = Dataset(None, Samples.of(()), "")


def read_dataset(file: DatasetFile) -> Dataset:
    """Check all samples. Raises ConfigError: unreadable, empty, broken records, missing questions, ids that repeat.

    A record has the question under `question_key`, the golden answer under `answer_key`, and may have `id`, `history`,
    `turns`, `facts`, `metadata` and `expect`; other keys become metadata. A record without an `id` gets one that is
    derived from its content without `expect`, which stays the same when lines are added or moved. One with
    `accepted: false` is checked and left out; nothing may be left.
    """
    reader = _reader(file)
    rereadable = reader if isinstance(reader, RereadableDataset) else None
    request = DatasetRequest(file.path, text_keys=("id", file.answer_key), json_keys=KNOWN_KEYS[1:])
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    samples: list[Sample] = []
    positions = array("Q")
    expected: dict[str, int] = {}
    checks: dict[str, None] = {}
    workspaces = False
    left_out: dict[str, bool] = {}  # ids, and whether they wait for a person
    try:
        # `open_input` also keeps a pipe, which readers would wait for, from them.
        with open_input(file.path) as content:
            written = file.path.stat().st_mtime_ns
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        for record in reader.read(request):
            if isinstance(record, Problem):
                problems.append(record)
                continue
            try:
                sample = sample_of(record.data, file)
                if sample.id in lines:
                    how = "the id" if "id" in record.data else "the content, and so the derived id,"
                    raise ValueError(f"{how} {sample.id!r} stands already in line {lines[sample.id]}; change it")
            except (ValueError, RecursionError) as error:
                problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                problems.append(Problem(f"{file.path}:{record.line}", problem))
                continue
            lines[sample.id] = record.line
            if record.data.get("accepted") is False:
                left_out[sample.id] = record.data.get("rejected") is not True
                continue
            for label in (label for part in sample.expect for label in part.conditions):
                expected.setdefault(label, record.line)
            workspaces = workspaces or sample.workspace is not None
            named = (each.get("name") for each in sample.verify if isinstance(each, dict))
            checks.update((name, None) for name in named if isinstance(name, str))
            # Only the place of a record is kept, so that memory does not grow with the dataset.
            if rereadable and record.position is not None:
                positions.append(record.position)
            else:
                samples.append(sample)
        if file.path.stat().st_mtime_ns != written:  # so that the digest may be that of other samples
            problems.append(Problem(str(file.path), "the file has changed while it was read; start again"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem(str(file.path), f"the dataset {unread(file.path, error)}")]) from error
    if problems:
        raise ConfigError(_together(problems))
    if not lines:
        raise ConfigError([Problem(str(file.path), "the dataset is empty; add at least one question")])

    def read(index: int) -> Sample:
        return sample_of(rereadable.read_again(request, positions[index]), file) if rereadable else samples[index]

    kept = {name: line for name, line in lines.items() if name not in left_out} if left_out else lines
    waiting = sum(left_out.values())
    found, at, digest = Samples([*kept], read), array("Q", kept.values()), getattr(reader, "digest", None) or digest
    return Dataset(file.path, found, digest, at, expected, waiting, tuple(checks), workspaces)


def _together(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Tell a problem that many records have once, where the first one stands."""
    places: dict[str, list[str]] = {}
    for place, message in problems:
        places.setdefault(message, []).append(place)
    for message, (first, *others) in places.items():
        yield Problem(first, f"{message} (and {len(others)} others)" if others else message)


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
        more = "" if file.type else "; for a file of another suffix, `dataset.type` says the format"
        raise ConfigError([Problem(str(file.path), f"{error}{more}")]) from error
    if not isinstance(reader, DatasetReader):
        raise PluginError(f"{component.target} of {component.distribution} is no dataset reader: it has no read()")
    return reader
