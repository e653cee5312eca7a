"""From a server to a report: generate, refuse to run, accept, run, with the simulated model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Project
from tests.plugins.start.generate.conftest import records


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_here")
def test_generated_questions_are_run_once_a_person_has_accepted_them(library: Callable[..., Project]) -> None:
    project = library("search", "read", more="metrics: [double/characters]\n")

    made = project.keval("generate", "eval.yaml", "-n", "4", "--unanswerable", "0.25")
    refused = project.run("eval.yaml")
    some = project.keval("review", "eval.yaml", "--questions", "--accept", records(project)[0]["id"])
    first = project.run("eval.yaml", "--dry-run")
    rest = project.keval("review", "--questions", "--accept-all")
    run = project.run("eval.yaml")

    assert [0, 2, 0, 0, 0, 0] == [each.code for each in (made, refused, some, first, rest, run)]
    assert "4 questions of 4 in" in made.stdout
    assert "simulated/judge: " in made.stdout
    assert "simulated, which makes plain questions" in made.stdout
    assert "4 questions are not accepted yet: keval review" in refused.stderr
    assert "3 questions still to decide on" in some.stderr
    assert "3 questions are not accepted yet: keval review" in first.stderr
    assert "none left; next: keval run eval.yaml" in rest.stderr
    assert 8 == len(project.lines("trials.jsonl"))
    assert {record["id"] for record in records(project)} == {each["sample"] for each in project.lines("trials.jsonl")}
    report = project.keval("report", str(project.run_directory()))
    assert 0 == report.code
    assert "with_library" in report.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_here")
def test_all_of_them_may_be_unanswerable(library: Callable[..., Project]) -> None:
    project = library("search", "read")

    made = project.keval("generate", "eval.yaml", "-n", "2", "--unanswerable", "1")

    assert 0 == made.code
    assert [True, True] == [record["unanswerable"] for record in records(project)]


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_here")
def test_the_simulated_model_makes_the_same_of_the_same_seed(library: Callable[..., Project]) -> None:
    project = library("search", "read")

    found = []
    for name, seed in (("one", "1"), ("again", "1"), ("other", "2")):
        project.keval("generate", "eval.yaml", "-n", "3", "--seed", seed, "--to", f"{name}.jsonl")
        found.append((project.root / f"{name}.jsonl").read_text(encoding="utf-8"))

    assert found[0] == found[1]
    assert 3 == len(found[2].splitlines())
