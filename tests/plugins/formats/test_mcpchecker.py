"""Files of mcpchecker of three authors: an eval of a server, a task of the first version, and an eval of skills."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.conftest import Project
from tests.plugins.formats.test_plugin import SKILL, tree

pytestmark = pytest.mark.usefixtures("simulated_here")

EVAL = """
kind: Eval
metadata: {name: clocks}
config:
  agent: {type: builtin.claude-code}
  mcpConfigFile: mcp.yaml
  taskSets:
    - glob: tasks/*/*.yaml
      assertions:
        toolsUsed: [{server: clock, tool: get_time}]
        toolsNotUsed: [{server: clock, toolPattern: "x.*"}]
        minToolCalls: 1
"""
SERVERS = "mcpServers: {clock: {command: python, args: [clock.py], enableAllTools: true}}\n"
TASK = """
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: what-time, difficulty: easy, runs: 2}
spec:
  requires: [{extension: kubernetes}]
  setup:
    - script: {file: setup.sh, timeout: 1m}
    - kubernetes.create: {kind: Namespace}
  verify:
    - script: {inline: "test -e ../../state"}
    - llmJudge: {contains: the time}
  cleanup:
    - script: {inline: "#!/usr/bin/env python3\\nimport os\\nos.rename('../../state', '../../cleaned')\\n"}
  prompt: {file: prompt.md}
"""
FIRST_VERSION = """
kind: Task
metadata: {name: old}
steps:
  setup: {file: setup.sh}
  verify: {exact: It is done.}
  prompt: {inline: Do it.}
"""
OF_SKILLS = """
kind: Eval
metadata: {name: greetings}
config:
  skills: {sources: [{type: path, path: ./skills}]}
  taskSets:
    - path: greet.yaml
      assertions: {skillsLoaded: [{skill: greeting}], skillsNotLoaded: [{skill: other}]}
"""
GREET = """
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: greet}
spec:
  verify: [{http: {url: "http://localhost:1"}}]
  prompt: {inline: Greet Ann.}
"""
MORE = {
    "eval.yaml": EVAL,
    "mcp.yaml": SERVERS,
    "old.yaml": FIRST_VERSION,
    "setup.sh": "touch begun\n",
    "skills.yaml": OF_SKILLS,
    "greet.yaml": GREET,
    "skills/greeting/SKILL.md": SKILL.format(name="greeting"),
}


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project.root)
    task = {"what-time.yaml": TASK, "prompt.md": "What time is it?\n", "setup.sh": "touch ../../state\n"}
    tree(project.root, {**{f"tasks/one/{name}": text for name, text in task.items()}, **MORE})
    return project.root


def table(stderr: str) -> list[str]:
    told = stderr.partition("no equivalent in keval:\n")[2].splitlines()
    return [line.split(maxsplit=1)[1] for line in told if ".yaml:" in line]


def test_tasks_of_an_eval_are_set_up_verified_and_cleaned_up(project: Project, here: Path) -> None:
    outcome = project.keval("run", "eval.yaml", "--agent", "scripted", "--condition", "baseline", "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    assert [("baseline", 1), ("baseline", 2)] == sorted(
        (each["condition"], each["repetition"]) for each in project.lines("trials.jsonl")
    )
    (sample,) = project.lines("samples.jsonl")
    assert ["What time is it?", "easy", ["The response says this: the time"]] == [
        sample["question"].strip(),
        *(sample["metadata"][key] for key in ("difficulty", "expectations")),
    ]
    assert [["get_time"], ["clocks"]] == [sample["expect"][0][key] for key in ("calls", "conditions")]
    verified = [each["value"] for each in project.lines("scores.jsonl") if each["metric"] == "verify/verify (1)"]
    assert ([1.0, 1.0], [False, True]) == (verified, [(here / name).exists() for name in ("state", "cleaned")])
    assert [
        "the key 'agent'",
        "mcp.yaml: the key 'enableAllTools'",
        "what-time: the key 'requires'",
        "variables for scripts, but KUBECONFIG: name others in `env` of `setup` and `cleanup`",
        "what-time: the step 'kubernetes.create' of setup",
        "what-time: the assertion 'toolsNotUsed', as it is written",
        "what-time: the assertion 'minToolCalls', as it is written",
    ] == table(outcome.stderr)


def test_a_task_of_the_first_version_is_run_alone(project: Project, here: Path) -> None:
    outcome = project.keval("run", "old.yaml", "--agent", "scripted", "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    assert [("baseline", "old")] == [(each["condition"], each["sample"]) for each in project.lines("trials.jsonl")]
    assert (here / "begun").exists()
    (sample,) = project.lines("samples.jsonl")
    assert ["The response means the same as this: It is done."] == sample["metadata"]["expectations"]


def test_skills_are_compared_and_written_out(project: Project, here: Path) -> None:
    outcome = project.keval("init", "mine", "--from", "skills.yaml")

    assert (0, "wrote mine/eval.yaml\nmine/eval.yaml: valid; 2 trials (1 sample)\n") == (outcome.code, outcome.stdout)
    assert ["greet: the step 'http' of verify"] == table(outcome.stderr)
    config = yaml.safe_load((here / "mine/eval.yaml").read_text(encoding="utf-8"))
    assert {"greeting": {"type": "skill", "path": "../skills/greeting"}} == config["contexts"]
    assert {"baseline": {}, "greetings": {"contexts": ["greeting"]}} == config["conditions"]
