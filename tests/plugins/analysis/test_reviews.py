"""reviews.jsonl: what counts of it, who may write to it, and what stays when writing fails."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

from keval import Run, RunError
from keval_analysis.findings.reviews import Review
from tests.conftest import Project
from tests.ratings import run_of
from tests.reviewing import review

A, B = "one/baseline/a/1", "one/baseline/b/1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run that nobody has reviewed."""
    project = Project(tmp_path_factory.mktemp("rated"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        run_of(project, "rated", {"a": 0.5, "b": 0.25})
    return project.root / "results"


@pytest.fixture
def run(made: Path, project: Project) -> Run:
    shutil.copytree(made, project.root / "results")
    return Run(project.run_directory())


def test_the_last_word_of_a_person_on_an_answer_counts(run: Run) -> None:
    assert [] == run.reviews()
    said = [
        review(run, A, note="bad"),
        review(run, A, "Ben", note="bad"),
        review(run, A, skip=True),
        review(run, B, note="good"),
        review(run, A, note="good"),
        review(run, B, note=None),
    ]
    run.reviews_file.append(said[:3])
    run.reviews_file.append(said[3:])

    assert said == [*run.reviews_file.read()]
    assert [said[1], said[2], said[4]] == run.reviews()


def test_a_review_is_of_the_answer_as_it_was(run: Run, project: Project) -> None:
    run.reviews_file.append([review(run, A, note="good"), review(run, B, note="good")])
    path = run.trials_file
    path.write_text(path.read_text("utf-8").replace('"0.5"', '"0.75"'), "utf-8")

    again = Run(run.path)
    assert [B] == [each.trial for each in again.reviews()]
    outcome = project.keval("report", run.id, "--explain")
    assert "1 review is ignored, because the trials were run again" in " ".join(outcome.stdout.split())
    found = project.keval("report", run.id, "--json").data["reviews"]
    assert (1, 1, 1) == (found["answers"], found["outdated"], found["notes"])


def test_what_a_power_cut_left_of_a_line_is_removed_before_the_next(run: Run) -> None:
    first, second = review(run, A, note="good"), review(run, B, note="bad")
    run.reviews_file.append([first])
    path = run.reviews_file.path
    path.write_bytes(path.read_bytes() + path.read_bytes()[:40])
    torn = [*run.reviews_file.read()]

    run.reviews_file.append([second])

    assert [first] == torn
    assert [first, second] == [*run.reviews_file.read()]


def test_reviews_are_written_all_or_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = review(run, A, note="good")
    run.reviews_file.append([said])
    write = os.write
    monkeypatch.setattr("os.write", lambda file, data: write(file, data[:50]))

    with pytest.raises(RunError, match=r"reviews\.jsonl cannot be written: .*; what was written before is kept"):
        run.reviews_file.append([review(run, B, note="good"), review(run, B, skip=True)])

    assert [said] == [*run.reviews_file.read()]
    assert run.reviews_file.path.read_bytes().endswith(b"\n")


def test_many_may_write_at_once_also_while_the_run_is_locked(run: Run) -> None:
    from keval.store.writer import RunWriter

    said = [review(run, A, f"reviewer {number}", note=f"{number} " * 500) for number in range(40)]

    with RunWriter(run.path).locked(), ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda each: run.reviews_file.append([each]), said))

    assert {each.reviewer: each for each in said} == {each.reviewer: each for each in run.reviews_file.read()}


def test_a_link_in_the_place_of_the_file_is_not_followed(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("mine\n", "utf-8")
    run.reviews_file.path.symlink_to(other)

    with pytest.raises(RunError, match="cannot be written"):
        run.reviews_file.append([review(run, A, note="good")])

    assert "mine\n" == other.read_text("utf-8")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"reviewer": " "}, "a reviewer has a name"),
        ({"reviewer": "a\nb"}, "a reviewer has a name"),
        ({"reviewer": "x" * 81}, "a reviewer has a name"),
        ({"kind": "smile"}, "must be in"),
        ({"note": ""}, "a note has 1 to 10,000 characters"),
        ({"kind": "level", "level": 3}, "is of a rubric"),
    ],
)
def test_what_is_no_review_is_refused(wrong: dict[str, object], told: str) -> None:
    said = Review("a/c/s/1", "0f", "Ann", "2026-11-23T08:00:00Z", "note", note="so")

    with pytest.raises(ValueError, match=told):
        Review(**{**attrs.asdict(said), **wrong})


def test_a_damaged_line_is_named(run: Run) -> None:
    run.reviews_file.path.write_text('{"trial": "x"}\n', "utf-8")

    with pytest.raises(RunError, match=r"reviews\.jsonl:1: this line is damaged"):
        run.reviews()
