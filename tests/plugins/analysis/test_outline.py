"""The outline of a run: what its questions have in figures."""

from __future__ import annotations

import json
import math
from statistics import stdev, variance

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


def test_scores_far_from_0_keep_the_digits_of_their_deviations(project: Project) -> None:
    seconds = {"a": [0, 1, 2], "b": [4, 6, 8]}
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {old: {type: recorded, path: old.jsonl}}
            conditions: {plain: {}, docs: {}}
            metrics: [basic/latency]
            execution: {num_repetitions: 3}
        """,
        questions_jsonl='{"id": "a", "question": "?"}\n{"id": "b", "question": "?"}\n',
        old_jsonl="".join(
            json.dumps({"id": name, "response": "x", "response_time": 1e8 + each}) + "\n"
            for name, of in seconds.items()
            for each in of
        ),
    )
    summary = project.keval("run", "eval.yaml", "--json").data

    outline = read_outline(open_run(project.run_directory()))

    pooled = math.sqrt((variance(seconds["a"]) + variance(seconds["b"])) / 2)
    assert [(pytest.approx(stdev([0, 1, 2, 4, 6, 8])), pytest.approx(pooled))] * 2 == [
        (arm["sd"], arm["repetitions"]["sd"]) for arm in summary["arms"]
    ]
    assert [pytest.approx(pooled**2)] == [each["repetition"] for each in summary["variance"]]
    (spreads,) = outline.spreads.values()
    assert [pytest.approx(stdev(of * 2)) for of in seconds.values()] == [*spreads.values()]
