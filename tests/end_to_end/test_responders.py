"""A scripted responder of another package, asked by every agent for its name in a config."""

from __future__ import annotations

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.yaml}
agents:
  anthropic: {model: simulated/double/scripted}
  gadk: {model: simulated/double/scripted}
  ms: {model: simulated/double/scripted}
  openai: {model: simulated/double/scripted}
conditions: {baseline: {}}
metrics: [basic/turns]
execution: {retry: {initial_backoff_seconds: 0}}
"""
QUESTIONS = """
- {id: named, question: "{script: [{text: 'I am {model}.'}]}"}
- {id: busy, question: "{script: [{fault: {status: 429, retry_after: 0}}, {text: Now.}]}"}
- {id: refused, question: "{script: [{fault: {status: 400, message: No questions.}}]}"}
"""


def test_every_agent_is_answered_by_the_script(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_yaml=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    trials = {(line["agent"], line["sample"]): line for line in project.lines("trials.jsonl")}
    assert 3 == outcome.code, outcome.stderr
    for agent in ("anthropic", "gadk", "ms", "openai"):
        named, busy, refused = (trials[agent, sample] for sample in ("named", "busy", "refused"))
        assert ("I am double/scripted.", []) == (named["output"], named["attempts"])
        assert "Now." == busy["output"]
        assert ["rate_limit"] == [attempt["failure"]["kind"] for attempt in busy["attempts"]]
        assert ("http_400", []) == (refused["failure"]["kind"], refused["attempts"])
        assert "No questions." in refused["failure"]["message"]
    assert ["simulated/double/scripted"] == project.read("summary.json")["simulated"]
