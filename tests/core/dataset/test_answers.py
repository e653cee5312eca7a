"""Several golden answers of a question: any of them counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: q.jsonl}
agents: {recorded: {path: answers.jsonl}}
metrics: [basic/equals, basic/contains, basic/similarity, {basic/regex: {reference: answer}}]
"""


def scored(project: Project, answer: Any, said: str) -> dict[str, float | None]:
    project.write(q_jsonl=json.dumps({"id": "q", "question": "Capital?", "answer": answer}), eval_yaml=CONFIG)
    project.write(answers_jsonl=json.dumps({"id": "q", "response": said}))
    outcome = project.keval("run", "eval.yaml", "--json")
    return {each["metric"].partition("/")[2]: each["mean"] for each in outcome.data["arms"]}


@pytest.mark.parametrize("answer", [["Paris is the answer.", "Paris"], ["Paris", None, " "], ["", "Lyon", "Paris"]])
def test_any_of_several_golden_answers_counts(project: Project, answer: list[str | None]) -> None:
    assert {"equals": 1.0, "contains": 1.0, "similarity": 1.0, "regex": 1.0} == scored(project, answer, "Paris")


def test_none_of_several_golden_answers_is_wrong(project: Project) -> None:
    assert {"equals": 0.0, "contains": 0.0, "similarity": 0.0, "regex": 0.0} == scored(
        project, ["Paris", "Lyon"], "Bonn"
    )


def test_what_is_no_text_is_compared_as_json_writes_it(project: Project) -> None:
    assert 1.0 == scored(project, [42, 43.5], "43.5")["equals"]
    assert 1.0 == scored(project, {"a": [1]}, '{"a": [1]}')["equals"]


def test_a_list_without_an_answer_is_no_golden_answer(project: Project) -> None:
    assert None is scored(project, [], "Paris")["equals"]


def test_every_golden_answer_is_shown(project: Project) -> None:
    scored(project, ["Paris", "Lutetia"], "Paris")
    assert "Lutetia" in project.keval("show", "latest", "--sample", "q").stdout


def test_a_rubric_that_takes_one_golden_answer_says_so_at_the_line_of_several(project: Project) -> None:
    config = CONFIG + "judges: {judge: {type: openai, model: simulated/judge}}\nrubrics: [coverage]\n"
    project.write(q_jsonl=json.dumps({"id": "q", "question": "Capital?", "answer": ["a", "b"]}), eval_yaml=config)
    project.write(answers_jsonl=json.dumps({"id": "q", "response": "Paris"}))

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert "q.jsonl:1: several golden answers, of which coverage takes one; keep one" in outcome.stderr


def test_a_rubric_about_tools_is_noticed_where_the_judge_sees_none(project: Project) -> None:
    rubrics = "rubrics: [used: {instructions: Did it call the right tool?, levels: {1: 'No.', 5: 'Yes.'}}]\n"
    config = CONFIG + "judges: {judge: {type: openai, model: simulated/judge}}\n" + rubrics
    project.write(q_jsonl='{"id": "q", "question": "Capital?"}', answers_jsonl='{"id": "q", "response": "a"}')
    project.write(eval_yaml=config)

    outcome = project.keval("validate", "eval.yaml")

    assert "the rubric 'used' speaks of 'tool', and 'judge' sees no tool calls" in outcome.stderr
