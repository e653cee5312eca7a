"""Runs of a config, from the command line."""

from __future__ import annotations

import sys

import pytest

from tests.agents.stage import CODER
from tests.conftest import Project
from tests.processes import children

CONFIG = f"""
dataset: {{path: questions.jsonl}}
agents:
  mine:
    type: acp
    command: [{sys.executable}, -S, {CODER}, --own]
    model: simulated/any
    env: {{OPENAI_BASE_URL: "{{model_base_url}}", OPENAI_API_KEY: "{{model_key}}"}}
conditions: {{plain: {{system_prompt: Answer.}}}}
metrics: [basic/contains]
execution: {{timeout_seconds: 2, retry: {{max_attempts: 1}}}}
"""


@pytest.fixture
def mine(project: Project) -> Project:
    project.write(questions_jsonl='{"id": "q", "question": "How are you?", "answer": "Well."}\n', eval_yaml=CONFIG)
    return project


@pytest.mark.slow
def test_a_trial_that_takes_too_long_ends_with_what_the_agent_wrote_and_leaves_no_process(mine: Project) -> None:
    config = CONFIG.replace("--own]", "--fault, hang]")
    mine.write(eval_yaml=config)
    before = children()

    outcome = mine.run("eval.yaml")

    (trial,) = mine.lines("trials.jsonl")
    assert (3, "timeout") == (outcome.code, trial["failure"]["kind"])
    assert "nothing comes of it" in trial["failure"]["message"]
    assert set() == children() - before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("--own]", "--fault, login]", "eval.yaml:3:3: python wants a login"),
        (sys.executable, "no-such-agent", "eval.yaml:3:3: the command 'no-such-agent' is not found on PATH"),
        ("{model_key}", "{model_kye}", "did you mean 'model_key'?"),
        ("--own]", "--own]\n    mode: bald", "has no mode 'bald'; did you mean 'bold'?"),
    ],
)
def test_what_cannot_work_ends_the_run_before_anything_runs(mine: Project, old: str, new: str, said: str) -> None:
    assert old in CONFIG
    mine.write(eval_yaml=CONFIG.replace(old, new))

    outcome = mine.run("eval.yaml")

    assert 2 == outcome.code
    assert said in outcome.stderr
    assert not [*mine.root.glob("results/*/*/trials.jsonl")]
