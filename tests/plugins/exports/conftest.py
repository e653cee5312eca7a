"""A run of everything that an export may choke on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keval import Run, open_run
from tests.conftest import Project

FORMULAS = ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'quoted", "''twice"]
"""Texts that a spreadsheet would calculate, and those that look as if they were guarded already."""
HOSTILE = 'a,b;"c"\r\nd\ne\rf 日本 😀 \u2028 ]]> <b>&amp;</b> \x00\x1b[31m \x7f \ufffe \uffff'
CONFIG = """
name: hostile, "quoted" & <odd>
dataset: {path: questions.jsonl}
agents:
  odd.one: {type: scripted}
contexts:
  notes: {text: "=notes"}
conditions:
  baseline: {system_prompt: ""}
  with notes: {system_prompt: "Answer {{ id }}.", contexts: [notes]}
metrics: [double/length, double/grade]
rubrics: [double/brevity]
judges: {strict: {}, reader: {}}
execution: {num_repetitions: 2, retry: {initial_backoff_seconds: 0, max_attempts: 2}}
"""
CALLS = [
    {"name": "=find", "arguments": {"where": HOSTILE}, "result": HOSTILE},
    {"name": "find", "arguments": {}, "error": "no such place \x01"},
]
QUESTIONS: list[dict[str, Any]] = [
    *({"id": text, "question": f"{text}?", "says": text, "level": 1} for text in FORMULAS),
    {"id": HOSTILE, "question": HOSTILE, "answer": HOSTILE, "says": HOSTILE, "level": 2, "claims": [HOSTILE]},
    {"id": "half", "question": "Half?", "half_a_pair": True, "level": 2},
    {"id": "empty", "question": "?", "says": " ", "level": 3},
    {"id": "a", "question": "Calls?", "calls": CALLS, "usage": {"input_tokens": 7, "output_tokens": 2}, "level": None},
    {"id": "busy", "question": "Again?", "busy": 1, "level": 3},
    {"id": "down", "question": "Who?", "fail": "it is out ]]> \x01", "level": 1},
    {
        "id": "turns",
        "question": "First?",
        "turns": ["And then?"],
        "history": [{"role": "user", "text": "Hi"}],
        "level": 3,
    },
]


def prepare(project: Project, config: str = CONFIG, questions: list[dict[str, Any]] = QUESTIONS) -> Run:
    """Make a run in the folder of a project."""
    (project.root / "eval.yaml").write_text(config, encoding="utf-8")
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    (project.root / "questions.jsonl").write_text(lines, encoding="utf-8")
    outcome = project.run("eval.yaml", "-q")
    assert outcome.code in (0, 3), outcome.stderr
    return open_run(project.run_directory())


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with formulas, control characters and lone surrogates, failures, retries and unscored answers."""
    return prepare(Project(tmp_path_factory.mktemp("hostile")))
