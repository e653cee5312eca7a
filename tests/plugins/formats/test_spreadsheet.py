"""Datasets in spreadsheets and in compressed files."""

from __future__ import annotations

import gzip
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.conftest import Project


def put(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


CONFIG = "dataset: {{path: {}}}\nagents: {{recorded: {{path: {}, partial: true}}}}\nmetrics: [basic/latency]\n"


@pytest.fixture(autouse=True)
def there(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)


def config(project: Project, dataset: str, *answered: str) -> str:
    put("a.jsonl", "".join(f'{{"id": "{each}", "response": "15", "response_time": 1}}\n' for each in answered))
    put("eval.yaml", CONFIG.format(dataset, "a.jsonl"))
    return "eval.yaml"


def sheets(**rows: list[list[Any]]) -> None:
    book = openpyxl.Workbook()
    for name, each in rows.items():
        sheet = book.create_sheet(name)
        for row in each:
            sheet.append(row)
    del book["Sheet"]
    book.save("q.xlsx")


def test_a_sheet_has_numbers_dates_and_empty_cells(project: Project) -> None:
    header = ["id", "question", "answer", "expect", "day", "at", "level", None]
    when = datetime(2026, 11, 30, 22, 5)
    first = [1, "How warm?", 15.0, '{"contains": "15"}', date(2026, 11, 30), when, 2.5, "beside"]
    sheets(Cities=[header, first, [None] * 8, ["b", "Why?", None, None, None, None, None, None]], Other=[["question"]])

    outcome = project.keval("run", config(project, "q.xlsx", "1", "b"), "-o", "results")
    named = project.keval("validate", config(project, "q.xlsx, sheet: Towns", "1"))
    empty = project.keval("validate", config(project, "q.xlsx, sheet: Other", "1"))

    assert 0 == outcome.code, outcome.stderr
    one, two = project.lines("samples.jsonl")
    assert ("1", "15", {"day": "2026-11-30", "at": "2026-11-30T22:05:00", "level": 2.5}) == (
        one["id"],
        one["answer"],
        one["metadata"],
    )
    assert (["15"], "b", None, {}) == (
        one["expect"][0]["contains"],
        two["id"],
        two["answer"],
        two["metadata"],
    )
    assert "q.xlsx: no sheet 'Towns'; it has Cities, Other" in named.stderr
    assert "q.xlsx: the dataset is empty" in empty.stderr


def test_what_is_no_spreadsheet_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets(Cities=[["question", "question"], ["A?", "B?"]])
    twice = project.keval("validate", config(project, "q.xlsx", "1"))
    put("q.xlsx", "question")
    text = project.keval("validate", "eval.yaml")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    lacking = project.keval("validate", "eval.yaml")

    assert "q.xlsx:1: the column 'question' stands there twice; keep one" in twice.stderr
    assert "q.xlsx: no spreadsheet can be read: File is not a zip file" in text.stderr
    assert "q.xlsx: reading a spreadsheet needs keval-formats[xlsx]: `" in lacking.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv.gz", b"id,question\n1,How?\n"),
        ("q.jsonl.gz", b'{"id": 1, "question": "How?"}\n'),
        ("q.json.gz", b'[{"id": 1, "question": "How?"}]'),
        ("q.yaml.gz", b"- {id: 1, question: How?}\n"),
    ],
    ids=["csv", "jsonl", "json", "yaml"],
)
def test_a_compressed_dataset_is_read_by_its_other_suffix(project: Project, name: str, content: bytes) -> None:
    (project.root / name).write_bytes(gzip.compress(content))

    outcome = project.keval("run", config(project, name, "1"), "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    assert [("1", "How?")] == [(each["id"], each["question"]) for each in project.lines("samples.jsonl")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (gzip.compress(b'{"question": "Why?"}\n{"question"\n'), "q.jsonl.gz:2:12: not valid JSON"),
        (gzip.compress(b'{"question": "Why?"}\n' * 99)[:-9], "q.jsonl.gz: not a whole gzip file: "),
        (b"question", "q.jsonl.gz: not a whole gzip file: Not a gzipped file"),
    ],
    ids=["line", "torn", "text"],
)
def test_a_broken_compressed_dataset_is_told_under_its_own_name(project: Project, content: bytes, told: str) -> None:
    (project.root / "q.jsonl.gz").write_bytes(content)

    outcome = project.keval("validate", config(project, "q.jsonl.gz", "1"))

    assert 2 == outcome.code
    assert told in outcome.stderr
