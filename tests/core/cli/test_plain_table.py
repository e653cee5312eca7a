"""`keval report --table`: the plain table of means and standard deviations."""

from __future__ import annotations

import json
from statistics import mean, stdev

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  one: {type: recorded, path: one.jsonl}
  two: {type: recorded, path: two.jsonl}
conditions: {plain: {}, docs: {}}
metrics: [double/length, basic/contains: {any_of: ["yes"]}]
"""
ANSWERS = {
    "one": {"plain": ["a" * 23, "a" * 81, "yes"], "docs": ["yes " + "a" * 60, "yes " + "a" * 80, "yes " + "a" * 17]},
    "two": {"plain": ["b" * 95, "b" * 95, "b" * 97], "docs": ["yes yes yes", "yes", "no" * 33]},
}


@pytest.fixture
def answered(project: Project) -> Project:
    lines = {
        agent: "".join(
            json.dumps({"id": f"q{number}", "condition": condition, "response": text}) + "\n"
            for condition, texts in conditions.items()
            for number, text in enumerate(texts)
        )
        for agent, conditions in ANSWERS.items()
    }
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl="".join(json.dumps({"id": f"q{number}", "question": "?"}) + "\n" for number in range(3)),
        one_jsonl=lines["one"],
        two_jsonl=lines["two"],
    )
    assert 0 == project.keval("run", "eval.yaml", "-q").code
    return project


def test_means_and_deviations_are_those_of_the_answers_with_agents_side_by_side(answered: Project) -> None:
    lengths = [
        [len(text) / 100 for text in ANSWERS[agent][condition]] for condition in ("plain", "docs") for agent in ANSWERS
    ]

    printed = answered.keval("report", "latest", "--table", env={"COLUMNS": "100"})

    rows = [line.split() for line in printed.stdout.splitlines()]
    assert (0, ["plain", "docs"], ["one", "two", "one", "two"]) == (printed.code, rows[0], rows[1])
    row = next(row for row in rows if row[:1] == ["length"])
    figures = [cell for values in lengths for cell in (f"{mean(values):.2f}", "±", f"{stdev(values):.2f}")]
    assert figures == row[-12:]


def test_metrics_stand_under_their_categories_in_parts_that_fit(answered: Project) -> None:
    answered.keval("score", "latest", "--metric", "weather/accuracy", "--metric", "weather/debuggability")

    wide, narrow = (
        answered.keval("report", "latest", "--table", env={"COLUMNS": columns}).stdout for columns in ("120", "60")
    )

    assert ["Functional performance", "Developer experience"] == [
        line for line in wide.splitlines() if line in {"Functional performance", "Developer experience"}
    ]
    assert 60 >= max(map(len, narrow.splitlines()))
    assert 2 == narrow.count("Developer experience")
