"""Claims that judges could not verify: listed with their samples, on the terminal the first of them."""

from __future__ import annotations

import json

from keval import open_run
from keval_analysis.claims import UnverifiedClaim, unverified_claims
from tests.conftest import Project


def ran(project: Project, **claims: list[str]) -> None:
    """Run samples in this order, each answered under two conditions and graded twice, with these claims."""
    questions = [{"id": name, "question": "?", "level": 2, "claims": told} for name, told in claims.items()]
    answers = [
        {"id": name, "condition": condition, "response": "so"} for name in claims for condition in ("plain", "docs")
    ]
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {old: {type: recorded, path: old.jsonl}}
            conditions: {plain: {}, docs: {}}
            judges: {wary: {type: reader}}
            rubrics: [double/brevity]
            execution: {judge_repetitions: 2}
        """,
        questions_jsonl="".join(f"{json.dumps(each)}\n" for each in questions),
        old_jsonl="".join(f"{json.dumps(each)}\n" for each in answers),
    )
    assert 0 == project.run("eval.yaml").code


def test_claims_are_listed_once_in_the_order_of_the_dataset(project: Project) -> None:
    ran(project, z=["it is so", "and so"], m=[], a=["it is not"])
    run = open_run(project.run_directory())

    found = unverified_claims(run, run.summary())

    expected = [
        UnverifiedClaim(sample, "old", condition, 1, f"old/{condition}/{sample}/1", "wary", text)
        for sample, texts in (("z", ["it is so", "and so"]), ("a", ["it is not"]))
        for condition in ("plain", "docs")
        for text in texts
    ]
    assert expected == [*found]


def test_the_report_prints_the_first_five(project: Project) -> None:
    ran(project, z=["it is\nso", "x" * 300], m=[], a=["it is not"], b=["neither"])
    told = project.keval("report", str(project.run_directory()), "--explain").stdout
    lines = [" ".join(line.split()) for line in told.splitlines()]

    at = lines.index("wary flagged unverified claims in 12 of 16 judgements: keval show RUN --sample ID")
    assert [
        "z (old plain): it is so",
        f"z (old plain): {'x' * 82}…",
        "z (old docs): it is so",
        f"z (old docs): {'x' * 83}…",
        "a (old plain): it is not",
        "3 more are on the page: keval report RUN --html FILE",
    ] == lines[at + 1 : at + 7]


def test_the_report_names_a_run_that_is_not_in_results_by_its_path(project: Project) -> None:
    ran(project, z=[])
    run = str(project.run_directory())

    assert f"keval view --run {run}\n" in project.keval("report", run, "--explain", env={"COLUMNS": "300"}).stdout


def test_a_run_without_claims_says_nothing_of_them(project: Project) -> None:
    ran(project, z=[], a=[])

    assert "unverified claim" not in project.keval("report", str(project.run_directory())).stdout
