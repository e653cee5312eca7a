"""The check of dataset readers."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Generator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import attrs

from keval.dataset.samples import KNOWN_KEYS
from keval.plugin import ConfigError, DatasetRequest, Problem, RawRecord, RereadableDataset, to_plain
from keval_testing.subject import Subject, excerpt, nothing_left_behind, rules_of

DATASET_RULES = rules_of("dataset", json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8")))
"""The rules of dataset readers, each with how to mend one that breaks it."""


def check_dataset(reader: str | type | object, path: Path, *, options: Mapping[str, Any] | None = None) -> None:
    """Check a dataset reader, given by its format's name, as a class or as an instance, with a file that it can read.

    The file needs two records or more. `options` are further keys of a config's section `dataset:`.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such reader is installed, or `options` do not construct it.
    """
    subject = Subject.of("keval.datasets", reader, options, DATASET_RULES)
    if subject.check_options():
        with nothing_left_behind(subject):
            _Check(subject, path).run()
    subject.finish()


_Record = RawRecord | Problem | object
_ENDS = (OSError, UnicodeDecodeError, ConfigError)
"""What a reader may raise for a file that it cannot read."""


@attrs.frozen
class _Check:
    subject: Subject
    path: Path

    def run(self) -> None:
        before = self.path.read_bytes()
        try:
            records = [*_read(self.subject.new(), self.path)]
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.subject.broken("records", f"it raised {excerpt(error)} for a file that it is to read")
            return
        self._check_records(records)
        if not self.subject.found:
            self._check_rereading(records)
            self._check_otherwise(records)
            self._check_damaged(before)
        if self.path.read_bytes() != before:
            self.subject.broken("file unchanged", f"{self.path.name} has other bytes than before")

    def _check_records(self, records: list[_Record]) -> None:
        line = 1
        for record in records:
            if isinstance(record, Problem):
                told = f"it cannot read its own file: {record.place}: {record.message}"
                self.subject.broken("records", told)
            elif not isinstance(record, RawRecord):
                self.subject.broken("records", f"it yielded {excerpt(record)}")
            else:
                if record.line < line:
                    told = f"the record after line {line} says that it is in line {record.line}"
                    self.subject.broken("places", told)
                else:
                    line = record.line
                self._check_data(record)
        if len(records) < 2:
            self.subject.broken("records", f"it found {len(records)} records; give a file with two or more")

    def _check_data(self, record: RawRecord) -> None:
        where = f"the record of line {record.line}"
        if not isinstance(record.data, Mapping):
            self.subject.broken("plain data", f"{where} is {excerpt(record.data)}, and no mapping")
            return
        try:
            kept = to_plain(record.data)
            pickle.dumps(record.data)
        except Exception as error:  # noqa: BLE001 - what a value raises is what is looked for
            self.subject.broken("plain data", f"{where} cannot be written: {excerpt(error)}")
            return
        if kept != record.data:
            self.subject.broken("plain data", f"{where}, {excerpt(record.data)}, comes back as {excerpt(kept)}")

    def _check_rereading(self, records: list[_Record]) -> None:
        reader = self.subject.new()
        if not isinstance(reader, RereadableDataset):
            return
        found = [record for record in _read(reader, self.path) if isinstance(record, RawRecord)]
        for record in reversed(found):
            if record.position is None:
                self.subject.broken("read again", f"the record of line {record.line} has no position")
                continue
            try:
                again: object = reader.read_again(_request(self.path), record.position)
            except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
                again = error
            if again != record.data:
                told = f"the record of line {record.line} was read again as {excerpt(again)}"
                self.subject.broken("read again", told)

    def _check_otherwise(self, records: list[_Record]) -> None:
        """Check that the records are the same when the file is read again, and while another one reads it, too."""
        reader = self.subject.new()
        for _ in range(2):
            if [*_read(reader, self.path)] != records:
                self.subject.broken("determinism", "the file was read again with other records")
        # A reader that was begun and is not read on must not disturb those after it.
        abandoned = _read(self.subject.new(), self.path)
        next(abandoned)
        # In turns, so that each meets what the other one keeps in the class.
        both = zip_longest(_read(self.subject.new(), self.path), _read(self.subject.new(), self.path))
        for first, second in both:
            if first != second:
                self.subject.broken("concurrency", "two readers of the file at once had different records")
        abandoned.close()

    def _check_damaged(self, content: bytes) -> None:
        damaged = {
            "an empty file": b"",
            "a file that ends too early": content[: len(content) * 2 // 3],
            "a file that is not UTF-8": b"\xff\xfe\x00\x80" + content,
            "a file of other lines": b"{[\x00 ]}, \"no record' :\n- : =\n" * 3,
        }
        with tempfile.TemporaryDirectory() as folder:
            for what, text in damaged.items():
                path = Path(folder, self.path.name)
                path.write_bytes(text)
                self._read_damaged(path, what)

    def _read_damaged(self, path: Path, what: str) -> None:
        try:
            records = [*_read(self.subject.new(), path)]
        except _ENDS:
            return
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.subject.broken("damaged files", f"for {what} it raised {excerpt(error)}")
            return
        for record in records:
            if isinstance(record, Problem) and not record.place.startswith(str(path)):
                self.subject.broken("places", f"for {what} a problem has the place {record.place!r}")
            elif not isinstance(record, Problem | RawRecord):
                self.subject.broken("records", f"for {what} it yielded {excerpt(record)}")


def _request(path: Path) -> DatasetRequest:
    """Return the request of a config that names no keys."""
    return DatasetRequest(path, ("id", "answer"), KNOWN_KEYS[1:])


def _read(reader: Any, path: Path) -> Generator[_Record, None, None]:
    yield from reader.read(_request(path))
