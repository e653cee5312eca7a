"""The outline of a run: what its questions have in figures."""

from __future__ import annotations

import json
from statistics import stdev

import pytest

from keval import open_run
from keval_analysis.outline import read_outline
from tests.conftest import Project


def test_the_spread_of_a_question_is_that_of_all_its_trials(project: Project) -> None:
    lengths = {"plain": (10, 25), "docs": (70, 95)}
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {old: {type: recorded, path: old.jsonl}, new: {type: recorded, path: new.jsonl}}
            conditions: {plain: {}, docs: {}}
            metrics: [double/length]
        """,
        questions_jsonl='{"id": "a", "question": "?"}\n{"id": "b", "question": "?"}\n',
        old_jsonl="".join(
            json.dumps({"id": name, "condition": condition, "response": "x" * length}) + "\n"
            for condition, of in lengths.items()
            for name, length in zip("ab", of, strict=True)
        ),
        new_jsonl=json.dumps({"id": "a", "response": "x" * 40}) + "\n",
    )
    project.keval("run", "eval.yaml", "-q")

    outline = read_outline(open_run(project.run_directory()))

    ((_, spreads),) = outline.spreads.items()
    assert {0: pytest.approx(stdev([0.1, 0.7, 0.4, 0.4])), 1: pytest.approx(stdev([0.25, 0.95]))} == spreads
    assert [{0: 0.1, 1: 0.25}] == [*outline.values["old", "plain"].values()]
