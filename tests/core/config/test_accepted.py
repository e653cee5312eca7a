"""Questions that nobody has accepted: checked like all, and left out of a plan, which says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keval.config.evaluation import DatasetFile
from keval.dataset.read import Dataset, read_dataset
from keval.plugin import ConfigError
from tests.conftest import Project

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "question": "A?", "answer": "1", "accepted": False, "proof": [{"tool": "t"}]},
    {"id": "b", "question": "B?", "answer": "2", "accepted": True},
    {"id": "c", "question": "C?", "answer": "3", "accepted": False, "rejected": True},
    {"id": "d", "question": "D?", "answer": "4"},
]
CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics: [double/characters]
"""


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def read(path: Path) -> Dataset:
    return read_dataset(DatasetFile(path))


def test_each_format_of_texts_leaves_them_out_and_counts_those_that_wait(tmp_path: Path) -> None:
    (tmp_path / "of.jsonl").write_text(lines(*RECORDS), encoding="utf-8")
    (tmp_path / "of.yaml").write_text(json.dumps(RECORDS), encoding="utf-8")
    table = "id,question,answer,accepted,rejected\na,A?,1,false,\nb,B?,2,true,\nc,C?,3,false,true\nd,D?,4,,\n"
    (tmp_path / "of.csv").write_text(table, encoding="utf-8")

    found = [read(tmp_path / f"of.{kind}") for kind in ("jsonl", "yaml", "csv")]

    assert [["b", "d"]] * 3 == [[sample.id for sample in dataset.samples] for dataset in found]
    assert ["B?", "D?"] == [sample.question for sample in found[0].samples]
    assert [1, 1, 1] == [dataset.waiting for dataset in found]
    assert [{}] * 6 == [sample.metadata for dataset in found for sample in dataset.samples]
    assert [f"{tmp_path / 'of.jsonl'}:4", f"{tmp_path / 'of.csv'}:5"] == [found[0].place("d"), found[2].place("d")]


def test_parquet_does_so_too(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"rejected": None, **record, "proof": None} for record in RECORDS]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "of.parquet")

    found = read(tmp_path / "of.parquet")

    assert (["b", "d"], 1) == (found.samples.ids, found.waiting)


def test_what_a_person_decides_changes_no_derived_id(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    ids: set[str] = set()
    for decision in ({}, {"accepted": True}, {"accepted": True, "rejected": False}):
        path.write_text(lines({"question": "A?", **decision}), encoding="utf-8")
        ids.update(read(path).samples.ids)

    assert 1 == len(ids)


@pytest.mark.parametrize("wrong", ["no", 0, None, [True]])
def test_what_is_neither_true_nor_false_is_an_error_of_its_line(tmp_path: Path, wrong: object) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(lines(RECORDS[3], {"question": "B?", "accepted": wrong}), encoding="utf-8")

    with pytest.raises(ConfigError) as raised:
        read(path)

    assert [f"{path}:2: 'accepted' is true or false, got {wrong!r}"] == [*map(str, raised.value.problems)]


def test_a_question_that_waits_is_checked_like_all(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(lines(RECORDS[3], {**RECORDS[0], "id": "d"}, {"accepted": False}), encoding="utf-8")

    with pytest.raises(ConfigError) as raised:
        read(path)

    first, second = map(str, raised.value.problems)
    assert f"{path}:2: the id 'd' stands already in line 1; change it" == first
    assert second.startswith(f"{path}:3: no question under 'question'")


def test_the_proof_of_another_dataset_is_metadata_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(lines({"question": "Is it prime?", "proof": "by cases"}), encoding="utf-8")

    assert {"proof": "by cases"} == read(path).samples[0].metadata


@pytest.mark.parametrize("command", [("validate",), ("run", "--dry-run")])
def test_commands_say_how_many_wait(project: Project, command: tuple[str, ...]) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines(*RECORDS))

    outcome = project.keval(command[0], "eval.yaml", *command[1:])

    assert 0 == outcome.code
    assert "questions.jsonl: 1 question is not accepted yet: keval review eval.yaml --questions" in outcome.stderr
    assert "2 samples" in outcome.stdout


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([RECORDS[0], {**RECORDS[0], "id": "e"}], "2 questions are not accepted yet: keval review eval.yaml"),
        ([RECORDS[2]], "every question is rejected; add others"),
    ],
)
def test_a_dataset_of_which_none_is_accepted_is_no_empty_success(
    project: Project, records: list[object], told: str
) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines(*records))

    outcome = project.keval("run", "eval.yaml")

    assert 2 == outcome.code
    assert f"questions.jsonl: {told}" in outcome.stderr
    assert not (project.root / "results").exists()
