"""The check of dataset readers names the rule that a reader breaks, and passes those that ship with keval."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, TextIO

import attrs
import pytest

from keval.plugin import DatasetRequest, Problem, RawRecord
from keval_testing import BrokenRulesError
from tests.kits.dataset_kit import DATASET_RULES, check_dataset

CONTENT = {
    "jsonl": '{"id": "a", "question": "Q?", "answer": "x"}\n\n{"id": "b", "question": "R?", "facts": {"x": [1, 2]}}\n',
    "yaml": "- {id: 012, question: Is it?, answer: yes}\n- {id: 7, question: How much?, answer: 3.50}\n",
    "csv": 'id,question,answer,facts\na,"Q ""x""?",x,\nb,R?,y,"{""a"": 1}"\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CONTENT, "parquet"])
def test_the_readers_of_keval_keep_the_rules(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"questions.{name}"
    if name == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"id": ["a", "b"], "question": ["Q?", "R?"]}), path)
    else:
        path.write_text(CONTENT[name], encoding="utf-8")

    check_dataset(name, path)


@attrs.frozen
class Lines:
    """Reads `question => answer` lines."""

    separator: str = "=>"

    def read(self, request: DatasetRequest) -> Iterator[Any]:
        for number, line in enumerate(request.path.read_text(encoding="utf-8").splitlines(), start=1):
            question, found, answer = (part.strip() for part in line.partition(self.separator))
            if found:
                yield RawRecord({"question": question, "answer": answer}, number)
            else:
                yield Problem(f"{request.path}:{number}", f"expected a question, {self.separator} and an answer")


class Given:
    def __init__(self, separator: str) -> None:
        self.separator = separator


class Unread:
    separator = "=>"


class Bare(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        yield from (record.data for record in super().read(request))


class Refusing(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        raise LookupError("no such column")


class Dated(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        for record in super().read(request):
            yield attrs.evolve(record, data={"question": "Q?", "asked_on": date(2026, 1, 1)})


class FromZero(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        for record in super().read(request):
            yield attrs.evolve(record, line=record.line - 1) if isinstance(record, RawRecord) else record


class Misplaced(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        for record in super().read(request):
            yield Problem("line 1", record.message) if isinstance(record, Problem) else record


@attrs.define
class Numbering(Lines):
    numbers: ClassVar[Iterator[int]] = itertools.count()

    def read(self, request: DatasetRequest) -> Iterator[Any]:
        for record in super().read(request):
            yield attrs.evolve(record, data={"id": next(self.numbers), **record.data})


class Shared(Lines):
    """Keeps the lines that are read in the class."""

    lines: ClassVar[Iterator[str]]

    def read(self, request: DatasetRequest) -> Iterator[Any]:
        Shared.lines = iter(request.path.read_text(encoding="utf-8").splitlines())
        number = 0
        while line := next(Shared.lines, ""):
            number += 1
            yield RawRecord({"question": line}, number)


class WrongAgain(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        for record in super().read(request):
            yield attrs.evolve(record, position=record.line) if isinstance(record, RawRecord) else record

    def read_again(self, request: DatasetRequest, position: int) -> Any:
        return {"question": position}


class Fragile(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        records = [*super().read(request)]
        yield from (records[0], *records[1:])


class Writing(Lines):
    def read(self, request: DatasetRequest) -> Iterator[Any]:
        records = [*super().read(request)]
        request.path.write_text(request.path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        yield from (record for record in records if isinstance(record, RawRecord))


class Holding(Lines):
    files: ClassVar[list[TextIO]] = []

    def read(self, request: DatasetRequest) -> Iterator[Any]:
        self.files.append(request.path.open(encoding="utf-8"))
        yield from super().read(request)


PLANTED: Mapping[str, list[type]] = {
    "options": [Given],
    "seam": [Unread],
    "records": [Bare, Refusing],
    "plain data": [Dated],
    "places": [FromZero, Misplaced],
    "determinism": [Numbering],
    "concurrency": [Shared],
    "read again": [WrongAgain],
    "damaged files": [Fragile],
    "file unchanged": [Writing],
    "nothing left behind": [Holding],
}


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "reader"), [(rule, each) for rule, readers in PLANTED.items() for each in readers])
def test_a_reader_that_breaks_a_rule_is_told_which(tmp_path: Path, rule: str, reader: type) -> None:
    path = tmp_path / "questions.acme"
    path.write_text("How? => So.\nWho? => She.\n", encoding="utf-8")

    with pytest.raises(BrokenRulesError) as caught:
        check_dataset(reader, path)

    assert rule in caught.value.rules, str(caught.value)
    assert DATASET_RULES[rule] in str(caught.value)


def test_a_reader_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    path = tmp_path / "questions.acme"
    path.write_text("How? -> So.\nWho? -> She.\n", encoding="utf-8")

    check_dataset(Lines, path, options={"separator": "->"})


def test_every_rule_is_planted_once() -> None:
    assert set(DATASET_RULES) == set(PLANTED)
