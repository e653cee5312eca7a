"""Claims that judges could not verify: listed with their samples, on the terminal the first of them."""

from __future__ import annotations

import json

from keval import open_run
from keval_analysis.claims import UnverifiedClaim, unverified_claims, worst_first
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


def test_a_run_ends_with_the_ten_worst_claims(project: Project) -> None:
    ran(project, z=["it is\nso", "x" * 300], m=[], a=["it is not"], b=[str(n) for n in range(4)])
    run = project.run_directory().name
    texts = {flag: project.keval("report", "latest", *flag.split()).stdout for flag in ("", "--explain")}
    lines = {flag: [" ".join(line.split()) for line in text.splitlines()] for flag, text in texts.items()}

    at = lines[""].index("14 unverified claims; those of the worst answers first:")
    assert ["z (old plain): it is so", f"z (old plain): {'x' * 82}…"] == lines[""][at + 1 : at + 3]
    assert ["b (old plain): 3", f"4 more: keval show {run} --unverified"] == lines[""][at + 10 : at + 12]
    assert "wary flagged unverified claims in 12 of 16 judgements" in lines["--explain"]
    assert "14 unverified claims" in project.keval("show", run, "--unverified").stdout


def test_the_claims_of_the_worst_answers_come_first() -> None:
    scores = {"a": 4.0, "b": 1.5, "c": None, "d": 3.0}
    claims = [UnverifiedClaim(name, "old", "docs", 1, name, "wary", "so", score=each) for name, each in scores.items()]
    found = UnverifiedClaim("e", "old", "docs", 1, "e", "wary", "so", "search #1", 1.0)

    assert ["b", "d", "a", "c"] == [claim.sample for claim in worst_first([*claims, found])]


def test_show_lists_them_all(project: Project) -> None:
    ran(project, z=["it is so"], a=["it is not", "\x1b[2J"])
    run = str(project.run_directory())

    printed = project.keval("show", run, "--unverified", "--limit", "5").stdout.splitlines()
    data = project.keval("show", run, "--unverified", "--json").data

    assert (["old/plain/z/1", "  wary: it is so"], "5 unverified claims") == (printed[:2], printed[-1])
    assert "  wary: \ufffd[2J" in printed
    assert (6, 2.0) == (len(data), data[0]["score"])


def test_the_report_names_a_run_that_is_not_in_results_by_its_path(project: Project) -> None:
    ran(project, z=[])
    run = str(project.run_directory())

    assert f"keval view --run {run}\n" in project.keval("report", run, "--explain", env={"COLUMNS": "300"}).stdout


def test_a_run_without_claims_says_nothing_of_them(project: Project) -> None:
    ran(project, z=[], a=[])

    assert "unverified claim" not in project.keval("report", str(project.run_directory())).stdout
