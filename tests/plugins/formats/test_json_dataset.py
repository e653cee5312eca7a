"""Datasets in JSON: a list, the one list of a mapping, and keys with dots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keval.config.evaluation import DatasetFile
from keval.dataset.read import read_dataset
from keval.errors import ConfigError

ROWS = [{"item": {"input": "What is 2 + 2?", "ground_truth": 4}}, {"item": {"input": "Bonjour, ça va?"}}]


def file(folder: Path, text: str, **options: str) -> DatasetFile:
    path = folder / "questions.json"
    path.write_bytes(text.encode(options.get("encoding", "utf-8")))
    return DatasetFile(path, "item.input", "item.ground_truth", options=options)


@pytest.mark.parametrize("data", [ROWS, {"name": "greetings", "rows": ROWS}])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_rows_are_read_with_their_lines(tmp_path: Path, data: object, encoding: str) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False)

    dataset = read_dataset(file(tmp_path, text, encoding=encoding))

    assert [("What is 2 + 2?", "4"), ("Bonjour, ça va?", None)] == [
        (each.question, each.answer) for each in dataset.samples
    ]
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if line.strip() == "{" and number > 1]
    outer = [number for number in lines if text.splitlines()[number - 1].index("{") == (2 if data is ROWS else 4)]
    assert outer == [int(dataset.place(name).rpartition(":")[2]) for name in dataset.samples.ids]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"item": ', "questions.json:1:11: not valid JSON: "),
        ('{"item": {}}\n{"item": {}}', "questions.json:2:1: not valid JSON: "),
        ('{"a": [], "b": []}', "a mapping with one such list; it has the lists a, b"),
        ('{"a": 1}', "a mapping with one such list; it has no list"),
        ("3", "it has no list"),
        ("[]", "the dataset is empty"),
        ('[{"item": {"output": "x"}}]', "questions.json:1: no question under 'item.input'"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as told:
        read_dataset(file(tmp_path, text))

    assert problem in str(told.value)


def test_an_encoding_that_python_does_not_know_is_told(tmp_path: Path) -> None:
    dataset = DatasetFile(file(tmp_path, "[]").path, options={"encoding": "klingon"})

    with pytest.raises(ConfigError, match="the dataset cannot be read: unknown encoding: klingon"):
        read_dataset(dataset)
