"""keval's own gateway is started again when its process is killed in the middle of a run."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  openai: {model: simulated/double/scripted}
  anthropic: {model: simulated/double/scripted}
metrics: [basic/turns]
execution: {retry: {initial_backoff_seconds: 0.01}}
"""


@pytest.mark.slow
def test_a_gateway_that_is_killed_is_started_again_and_costs_no_trial(project: Project) -> None:
    asked = [f"{{script: [{{{'kills: died, ' if n == 10 else ''}text: 'It is {n}.'}}]}}" for n in range(24)]
    questions = [{"id": f"q{n}", "question": question} for n, question in enumerate(asked)]
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(question) + "\n" for question in questions))

    outcome = project.spawn("run", "eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    trials = project.lines("trials.jsonl")
    assert {f"{agent}/baseline/q{n}/1": f"It is {n}." for agent in ("openai", "anthropic") for n in range(24)} == {
        trial["id"]: trial["output"] for trial in trials
    }
    assert {"connection"} == {each["failure"]["kind"] for trial in trials for each in trial["attempts"]}
    assert 1 == outcome.stderr.count("the gateway of the simulated models ended (exit code 137) and is started again")
