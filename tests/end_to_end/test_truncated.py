"""Answers that a limit of tokens ended: scored, and marked wherever a run is looked at."""

from __future__ import annotations

import csv

import pytest

from tests.conftest import Project
from tests.viewing import client_of, served

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  short: {type: openai, model: simulated/any, max_tokens: 2}
  whole: {type: anthropic, model: simulated/any}
conditions: {baseline: {}, other: {system_prompt: "Answer."}}
metrics: [double/length]
gates: ["truncated <= 0", "short:other/truncated <= 100%"]
"""
SAID = (
    "4 answers were cut off at a limit of length, and scored all the same: 2 of 2 of short baseline,"
    " 2 of 2 of short other."
)


def unfolded(told: str) -> str:
    return " ".join(told.split())


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_here")
def test_an_answer_that_a_limit_ended_is_scored_and_marked_everywhere(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"question": "Hello you!"}\n{"question": "Thank you!"}\n')

    outcome = project.keval("run", "eval.yaml")

    assert 1 == outcome.code, outcome.stderr
    assert SAID in unfolded(outcome.stdout)
    assert "of whole" not in unfolded(outcome.stdout)
    trials = project.lines("trials.jsonl")
    assert {("short", True), ("whole", False)} == {(each["agent"], each["transcript"]["truncated"]) for each in trials}
    assert all(len(each["output"]) == 8 for each in trials if each["agent"] == "short")
    assert len(trials) == len([line for line in project.lines("scores.jsonl") if line["value"] is not None])
    summary = project.read("summary.json")
    assert [2, 2, 0, 0] == [arm["truncated"] for arm in summary["trials"]]
    verdicts = {gate["gate"]: (gate["verdict"], gate["value"]) for gate in summary["gates"]}
    assert {
        "short:baseline/truncated <= 0": ("failed", 1.0),
        "short:other/truncated <= 0": ("failed", 1.0),
        "whole:baseline/truncated <= 0": ("held", 0.0),
        "whole:other/truncated <= 0": ("held", 0.0),
        "short:other/truncated <= 100%": ("held", 1.0),
    } == verdicts
    for flags in (["--explain"], ["--markdown"]):
        assert SAID in unfolded(project.keval("report", "latest", *flags).stdout)
    told = {each["agent"]: project.keval("show", "latest", "--trial", each["id"]).stdout for each in trials}
    assert [True, False] == ["the answer was cut off" in told[agent] for agent in ("short", "whole")]
    assert "cut off at a limit" in unfolded(project.keval("show", "latest", "--sample", trials[0]["sample"]).stdout)
    with served(project.root / "results") as running, client_of(running) as client:
        place = f"/runs/eval/{project.run_directory().name}/trials"
        pages = {each["agent"]: client.get(f"{place}/{each['id'].replace('/', '%2F')}").text for each in trials}
    assert [True, False] == ["cut off at a limit of length" in pages[agent] for agent in ("short", "whole")]
    project.keval("export", "latest", "--format", "csv", "--to", "tables")
    with (project.root / "tables" / "trials.csv").open(encoding="utf-8", newline="") as file:
        assert {"short": "true", "whole": "false"} == {row["agent"]: row["truncated"] for row in csv.DictReader(file)}


@pytest.mark.usefixtures("simulated_here")
def test_a_run_that_says_nothing_of_it_has_no_truncated_answers(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"question": "Hello you!"}\n')
    project.keval("run", "eval.yaml")
    path = project.run_directory() / "trials.jsonl"
    path.write_text(path.read_text("utf-8").replace('"truncated":true,', "").replace(',"truncated":true', ""), "utf-8")

    outcome = project.keval("report", "latest", "--json")

    assert [0] * 4 == [arm["truncated"] for arm in outcome.data["trials"]], outcome.stderr
