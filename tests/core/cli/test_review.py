"""`keval review --questions`: what waits is shown, flags decide, and only those lines change."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from keval.config.evaluation import DatasetFile
from keval.plugin import ConfigError
from keval_analysis.question_review import QuestionFile
from tests.conftest import Project

CONFIG = "dataset: {path: questions.jsonl}\nagents: {scripted: {}}\nconditions: {baseline: {}}\n"
FIRST = '{"id": "first",  "question":"How far is it?", "accepted": true}\r\n'
WAITING = (
    '{"id": "height", "question": "How high is it?", "answer": "1,842 m", "accepted": false, "proof": [{"tool":'
    ' "look_up", "arguments": {"of": "it"}, "result": "It is big.\\nIt stands at 1,842 m.", "evidence": "It stands at'
    ' 1,842 m."}], "generated_by": "simulated/judge"}\n'
)
SECOND = '{"id": "age", "question": "How old is it?", "answer": "Ünknown", "accepted": false, "unanswerable": true}\n'
LAST = "\n{'id': not JSON\n".replace("{'id': not JSON", '{"question": "And?"}')


@pytest.fixture
def questions(project: Project) -> Project:
    project.write(eval_yaml=CONFIG)
    (project.root / "questions.jsonl").write_bytes((FIRST + WAITING + SECOND + LAST).encode())
    return project


def text(project: Project) -> str:
    return (project.root / "questions.jsonl").read_bytes().decode()


def record(project: Project, name: str) -> dict[str, Any]:
    found = (json.loads(line) for line in text(project).splitlines() if line.strip())
    return next(each for each in found if each.get("id") == name)


def test_each_question_is_shown_with_its_proof_and_how_to_decide(questions: Project) -> None:
    before = text(questions)

    shown = questions.keval("review", "eval.yaml", "--questions")

    assert 0 == shown.code
    assert "1 of 2: height, by simulated/judge\nHow high is it?\ngolden answer: 1,842 m\n" in shown.stdout
    assert '  look_up {"of": "it"}\n    It stands at 1,842 m.\n' in shown.stdout
    assert "golden answer, as the tools cannot tell: Ünknown" in shown.stdout
    decide = "keval view --questions eval.yaml, or --accept ID, --reject ID, --accept-all"
    assert f"2 questions still to decide on; next: {decide}" in shown.stderr
    assert before == text(questions)


def test_only_the_lines_that_are_decided_on_change(questions: Project) -> None:
    outcome = questions.keval("review", "eval.yaml", "--questions", "--accept", "height", "--reject", "age")

    assert (0, True) == (outcome.code, "none left; next: keval run eval.yaml" in outcome.stderr)
    assert WAITING.replace('"accepted": false', '"accepted": true') in text(questions)
    assert SECOND.replace("}\n", ', "rejected": true}\n') in text(questions)
    assert text(questions).startswith(FIRST)
    assert text(questions).endswith(LAST)


def test_flags_decide_without_a_terminal(questions: Project) -> None:
    both = questions.keval("review", "eval.yaml", "--questions", "--accept-all", "--reject", "age", "--json")

    assert 0 == both.code
    assert [] == both.data
    assert record(questions, "height")["accepted"] is True
    assert (False, True) == (record(questions, "age")["accepted"], record(questions, "age")["rejected"])


def test_what_waits_is_listed_for_machines(questions: Project) -> None:
    listed = questions.keval("review", "eval.yaml", "--questions", "--json").data

    assert ["height", "age"] == [entry["id"] for entry in listed]
    assert "It stands at 1,842 m." == listed[0]["proof"][0]["evidence"]
    assert [False, True] == [entry["unanswerable"] for entry in listed]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--accept", "hight"), "--accept hight: no question with this id waits; did you mean 'height'?"),
        (("--reject", "first"), "--reject first: no question with this id waits"),
        (("--accept", "age", "--reject", "age"), "--reject age: --accept names it, too; decide for one"),
    ],
)
def test_flags_that_mean_nothing_are_refused(questions: Project, flags: tuple[str, ...], told: str) -> None:
    before = text(questions)

    outcome = questions.keval("review", "eval.yaml", "--questions", *flags)

    assert 2 == outcome.code
    assert told in outcome.stderr
    assert before == text(questions)


def test_another_format_is_edited_by_hand(questions: Project) -> None:
    questions.write(eval_yaml=CONFIG.replace("jsonl", "yaml"))

    outcome = questions.keval("review", "eval.yaml", "--questions")

    assert 2 == outcome.code
    assert "questions.yaml: keval writes questions to JSON lines only" in outcome.stderr
    assert "'yaml'; open it in an editor, and set `accepted: true`" in outcome.stderr


def test_a_dataset_that_is_not_there_is_no_question_less(questions: Project) -> None:
    (questions.root / "questions.jsonl").unlink()

    outcome = questions.keval("review", "eval.yaml", "--questions", "--accept-all")

    assert 2 == outcome.code
    assert "questions.jsonl: there is no such file; `keval generate` makes questions" in outcome.stderr


def test_a_line_that_is_no_question_is_told_with_its_place(questions: Project) -> None:
    with (questions.root / "questions.jsonl").open("a", encoding="utf-8") as file:
        file.write("{\n")

    outcome = questions.keval("review", "eval.yaml", "--questions")

    assert 2 == outcome.code
    assert "questions.jsonl:6: this line is no question:" in outcome.stderr


def test_who_decides_on_a_question_that_changed_meanwhile_overwrites_nothing(questions: Project) -> None:
    file = QuestionFile(DatasetFile(questions.root / "questions.jsonl"))
    seen = file.waiting()
    file.edit(seen[0], "How high?", "1,800 m")
    after = text(questions)

    with pytest.raises(ConfigError, match="'height' was changed meanwhile; look at it again"):
        file.accept(seen)

    assert after == text(questions)


def test_many_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    names = [f"q{number}" for number in range(24)]
    file = QuestionFile(DatasetFile(path))
    file.append([{"id": name, "question": f"{name}?", "accepted": False} for name in names])
    by_id = {entry.id: entry for entry in file.waiting()}

    def work(mine: list[str]) -> None:
        for name in mine:
            file.accept([by_id[name]])
            file.append([{"id": f"after-{name}", "question": f"After {name}?", "accepted": False}])

    threads = [threading.Thread(target=work, args=(names[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {*names} == {entry.id for entry in file.questions() if entry.accepted}
    assert {f"after-{name}" for name in names} == {entry.id for entry in file.waiting()}
    assert [path] == [*tmp_path.iterdir()]


def test_a_link_and_the_mode_of_the_file_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "questions.jsonl"
    real.write_text('{"id": "a", "question": "A?", "accepted": false}\n', encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    file = QuestionFile(DatasetFile(link))

    file.accept(file.waiting())

    assert link.is_symlink()
    assert [] == file.waiting()
    assert 0o640 == os.stat(real).st_mode & 0o777
