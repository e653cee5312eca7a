"""Datasets: three formats, one meaning; ids that stay."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from keval import Message, Sample
from keval.config.evaluation import DatasetFile
from keval.dataset.read import read_dataset
from keval.plugin import ConfigError
from tests.conftest import Project

RECORD = {
    "id": "oslo",
    "q": "And tomorrow?",
    "golden": "Snow.",
    "history": [{"role": "user", "content": "Weather in Oslo?"}, {"user_message": "Sure?", "response": "Quite."}],
    "turns": ["Thanks!"],
    "facts": {"preferences": {"dislikes_cold": True}},
    "metadata": {"kind": "forecast"},
    "source": "survey",
}
SAMPLE = Sample(
    id="oslo",
    question="And tomorrow?",
    answer="Snow.",
    history=(Message("user", "Weather in Oslo?"), Message("user", "Sure?"), Message("assistant", "Quite.")),
    turns=("Thanks!",),
    facts={"preferences": {"dislikes_cold": True}},
    metadata={"kind": "forecast", "source": "survey"},
)


def read(path: Path, content: str) -> tuple[Sample, ...]:
    path.write_text(content, encoding="utf-8")
    return tuple(read_dataset(DatasetFile(path, "q", "golden")).samples)


def test_jsonl_yaml_and_csv_mean_the_same(tmp_path: Path) -> None:
    columns = ["id", "q", "golden", "history", "turns", "facts", "metadata", "source"]
    cells = [value if isinstance(value := RECORD[name], str) else json.dumps(value) for name in columns]
    quoted = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)

    found = [
        read(tmp_path / "q.jsonl", json.dumps(RECORD) + "\n"),
        read(tmp_path / "q.yaml", json.dumps([RECORD])),
        read(tmp_path / "q.csv", ",".join(columns) + "\n" + quoted + "\n"),
    ]

    assert [(SAMPLE,)] * 3 == found


def test_a_golden_answer_and_an_id_in_yaml_stay_as_they_are_written(tmp_path: Path) -> None:
    records = "- {id: 012, q: Is it?, golden: yes}\n- {id: 7, q: How much?, golden: 3.50, facts: {share: 0.50}}\n"

    found = read(tmp_path / "q.yaml", records)

    assert [("012", "yes"), ("7", "3.50")] == [(sample.id, sample.answer) for sample in found]
    assert {"share": 0.5} == found[1].facts


def test_a_derived_id_stays_when_lines_move(tmp_path: Path) -> None:
    first, second = '{"q": "How?", "golden": "So."}\n', '{"golden": "She.", "q": "Who?"}\n'

    forwards = read(tmp_path / "a.jsonl", first + second)
    backwards = read(tmp_path / "b.jsonl", '{"q": "Who?", "golden": "She."}\n' + first)

    assert [sample.id for sample in forwards] == [sample.id for sample in reversed(backwards)]
    assert 12 == len(forwards[0].id)


@pytest.mark.parametrize(
    "record",
    [
        {"q": "Oslo?", "turns": ["And Rome?", "Bye"]},
        {"q": "Oslo?", "turns": ["Oslo?", "And Rome?", "Bye"]},
        {"turns": ["Oslo?", "And Rome?", "Bye"]},
    ],
    ids=["question and follow-ups", "question again as first turn", "turns alone"],
)
def test_turns_follow_the_question(tmp_path: Path, record: dict[str, object]) -> None:
    (sample,) = read(tmp_path / "q.jsonl", json.dumps(record))

    assert ("Oslo?", "And Rome?", "Bye") == sample.asked


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (sample,) = read(tmp_path / "q.csv", "\ufeffq,golden\nHow?,So.\n")

    assert ("How?", "So.") == (sample.question, sample.answer)


def test_every_broken_row_of_a_csv_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "q.csv", 'q,facts\nHow?,{"a": 1}\nWho?\nWhy?,{"a"\n')

    places = [problem.place.rpartition(":")[2] for problem in caught.value.problems]
    assert ["3", "4"] == places


def test_an_unknown_format_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no dataset format named 'txt' .* `dataset.type` says the format"):
        read(tmp_path / "q.txt", "How?")


def test_a_file_that_changes_after_it_was_checked_is_told(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(RECORD), encoding="utf-8")
    samples = read_dataset(DatasetFile(path, "q", "golden")).samples
    path.write_text(json.dumps({**RECORD, "q": "And then?"}), encoding="utf-8")

    with pytest.raises(ConfigError, match="has changed since it was checked"):
        samples[0]


def test_a_file_that_changes_between_its_digest_and_its_samples_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "q.jsonl"
    digest = hashlib.file_digest

    def edited(*args: Any) -> Any:
        found = digest(*args)
        path.write_text('{"q": "Another?"}\n', encoding="utf-8")
        os.utime(path, (1, 1))  # clocks of file systems may not tell it from the first
        return found

    monkeypatch.setattr(hashlib, "file_digest", edited)

    with pytest.raises(ConfigError, match="the file has changed while it was read; start again"):
        read(path, '{"q": "One?"}\n')


def test_samples_are_a_sequence(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "q": f"{n}?"}) + "\n" for n in range(5)), encoding="utf-8")

    samples = read_dataset(DatasetFile(path, "q", "golden")).samples

    assert ["4?", "1?"] == [samples[-1].question, samples.named("1").question]
    assert ["1", "2"] == [sample.id for sample in samples[1:3]]
    assert ["2", "4"] == [sample.id for sample in samples.pick([0, 2, 4])[1:]]
    with pytest.raises(IndexError):
        samples[5]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("q.csv", "id,q,golden,golden\na,How?,so,thus\n", "q.csv:1: the column 'golden' stands there twice; keep one"),
        ("q.yaml", "  \n", "q.yaml: the dataset is empty; add at least one question"),
        ("q.yaml", "a: 1\n", "q.yaml:1:1: expected a list of records: `- question: …`"),
    ],
)
def test_a_file_of_another_shape_is_told(tmp_path: Path, name: str, content: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / name, content)

    assert f"{tmp_path}/{problem}" == str(caught.value)


def test_a_dataset_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "q": f"{n}?"}) + "\n" for n in range(1_000)), encoding="utf-8")
    samples = read_dataset(DatasetFile(path, "q", "golden")).samples

    read_once = [weakref.ref(sample) for sample in samples]
    gc.collect()

    assert sum(sample() is not None for sample in read_once) < 500


def test_a_parquet_file_means_the_same(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    nested = [RECORD, {"id": "rome", "q": "Is it warm?", "golden": None}]
    flat = [{**RECORD, **{key: json.dumps(RECORD[key]) for key in ("history", "turns", "facts", "metadata")}}]
    for name, rows in (("nested", nested), ("flat", flat)):
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"{name}.parquet")

    found = [read_dataset(DatasetFile(tmp_path / f"{name}.parquet", "q", "golden")) for name in ("nested", "flat")]

    assert [SAMPLE, Sample("rome", "Is it warm?")] == list(found[0].samples)
    assert [SAMPLE] == list(found[1].samples)
    assert f"{tmp_path / 'nested.parquet'}:2" == found[0].place("rome")


def test_a_broken_parquet_file_and_a_missing_library_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "q.parquet"
    path.write_bytes(b"PAR1 no more")
    pytest.importorskip("pyarrow")

    with pytest.raises(ConfigError, match="not valid Parquet"):
        read_dataset(DatasetFile(path))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"needs pyarrow: `.* pyarrow`"):
        read_dataset(DatasetFile(path))


def test_a_format_has_options_and_a_type_stands_for_the_suffix(project: Project) -> None:
    project.write(
        eval_yaml="""
        dataset: {path: questions.txt, type: csv, delimiter: ";"}
        agents: {scripted: {}}
        metrics: [double/length]
        """,
        questions_txt="id;question\na;Why?\nb;How, then?\n",
    )

    outcome = project.keval("run", "eval.yaml", "--json")
    wrong = project.keval("validate", "eval.yaml")
    project.write(
        eval_yaml="""
        dataset: {path: questions.txt, type: csv, delimiter: ";;", delimter: x}
        agents: {scripted: {}}
        metrics: [double/length]
        """
    )
    told = project.keval("validate", "eval.yaml").stderr

    assert (0, 0) == (outcome.code, wrong.code), outcome.stderr
    assert {"a", "b"} == {trial["sample"] for trial in project.lines("trials.jsonl")}
    assert "eval.yaml:1:60: unknown key 'delimter'; did you mean 'delimiter'?" in told
    assert "eval.yaml:1:54: 'delimiter' must be one character: ';;'" in told
    assert 2 == told.count("error: ")
