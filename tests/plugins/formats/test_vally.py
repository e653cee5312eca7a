"""Files of vally in the manner of three authors: of a skill, of many files and servers, and an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Project
from tests.plugins.formats.test_plugin import SKILL, tree

pytestmark = pytest.mark.usefixtures("simulated_here")

SKILLS = {f"skills/{name}/SKILL.md": SKILL.format(name=name) for name in ("letters", "pdf")}
OF_A_SKILL = """
name: letters
type: capability
defaults: {runs: 2, timeout: 2m, model: gpt-5.5}
environment: {skills: [skills/letters, ./skills/pdf/SKILL.md]}
scoring: {threshold: 0.7}
stimuli:
  - name: write
    prompt: Write to Ann.
    tags: {priority: p0}
    rubric: [It is polite]
    constraints: {max_turns: 10}
    graders:
      - {type: completed}
      - {type: output-contains, config: {substring: ann}}
      - {type: output-not-matches, config: {pattern: "(?i)error"}}
      - {type: skill-invocation, config: {required: [letters], disallowed: [pdf]}}
      - {type: tool-calls, config: {required: [look_up, {name: send_letter}]}}
      - {type: tool-calls, config: {required: [{name: look_up, min_count: 2}]}}
      - {type: prompt, config: {prompt: Judge it., threshold: 1}}
"""
OF_FILES = """
graders: [{type: output-not-contains, config: {substring: "az up", case_sensitive: true}}]
config: {runs: 1, timeout: 90}
environment:
  files: [{src: fixtures/in.txt, dest: in/input.txt}]
  commands: ["touch made"]
  mcpServers: {clock: {command: uvx, args: [mcp-server-time]}}
stimuli:
  - name: one
    prompt: Copy it.
    agent_environment: docs
    environment: {files: [{src: fixtures/in.txt, dest: other.txt}]}
    graders:
      - {type: file-exists, config: {path: "*.txt"}}
      - {type: file-not-exists, config: {path: made.md}}
      - {type: file-contains, config: {path: in/input.txt, value: hi}}
      - {type: file-not-matches, config: {path: in/input.txt, pattern: "h.i"}}
      - {type: run-command, config: {command: test -e made}}
      - {type: file-contains, config: {path: "*.txt", value: hi}}
  - {name: two, prompt: Which one, graders: [{type: prompt, config: {prompt: It asks back.}}, {type: diff-empty}]}
"""
EXPERIMENT = """
name: lift
evals: ["*.vally.yaml"]
vary: [/environment/skills]
baseline: none
variants:
  none: {environment: {skills: []}}
  all: {}
  pdf only: {environment: {skills: [skills/pdf]}, overrides: {model: x}}
"""


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project.root)
    files: dict[str, Any] = {**SKILLS, "fixtures/in.txt": "hi\n", "letters.vally.yaml": OF_A_SKILL}
    tree(project.root, {**files, "eval.yaml": OF_FILES, "lift.experiment.yaml": EXPERIMENT})
    return project.root


def test_stimuli_of_a_skill_are_run_with_it_and_without(project: Project, here: Path) -> None:
    chosen = ("--agent", "scripted", "--condition", "baseline")
    whole = project.keval("validate", "letters.vally.yaml")
    outcome = project.keval("run", "letters.vally.yaml", *chosen, "-o", "results")

    assert (0, "valid; 4 trials (1 sample)") == (outcome.code, whole.stdout.partition(": ")[2][:26]), outcome.stderr
    assert [1, 2] == sorted(each["repetition"] for each in project.lines("trials.jsonl"))
    (sample,) = project.lines("samples.jsonl")
    assert {"tags": {"priority": "p0"}, "expectations": ["It is polite"]}.items() <= sample["metadata"].items()
    assert [
        {"type": "regex", "value": "(?i:ann)"},
        {"type": "not-regex", "value": "(?i:error)"},
    ] == sample["metadata"]["asserts"]["assert"]
    assert [["letters"], ["pdf"], ["look_up", "send_letter"], ["letters"]] == [
        sample["expect"][0][key] for key in ("reads", "not_reads", "calls", "conditions")
    ]
    told = outcome.stderr.partition("no equivalent in keval:\n")[2]
    assert [
        "letters.vally.yaml:6:1 the key 'scoring'",
        "letters.vally.yaml:4:34 the key 'model'",
        "letters.vally.yaml:12:5 the key 'constraints'",
        "letters.vally.yaml:8:5 a grader of the type 'tool-calls', as it is configured",
        "letters.vally.yaml:8:5 a grader of the type 'prompt', as it is configured",
    ] == [" ".join(line.split()) for line in told.splitlines() if "vally.yaml" in line]


def test_files_and_commands_are_a_workspace_that_graders_look_at(project: Project, here: Path) -> None:
    written = project.keval("init", "mine", "--from", "eval.yaml")
    outcome = project.keval("run", "mine/eval.yaml", "--agent", "scripted", "--condition", "baseline", "-o", "results")

    assert (0, 0) == (written.code, outcome.code), written.stderr + outcome.stderr
    config = yaml.safe_load((here / "mine/eval.yaml").read_text(encoding="utf-8"))
    assert {"clock": {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "cwd": ".."}} == config[
        "contexts"
    ]
    assert {"path": "../eval.yaml", "type": "vally"} == config["dataset"]
    assert "an environment of .vally.yaml, 'docs'" in written.stderr
    assert 1 == written.stderr.count("a grader of the type 'file-contains', as it is configured")
    checks = {each["metric"]: each["value"] for each in project.lines("scores.jsonl") if each["sample"] == "one"}
    assert {1.0} == {value for metric, value in checks.items() if metric.startswith("verify/")}, checks
    assert 7 == len([metric for metric in checks if metric.startswith("verify/")])
    second = project.lines("samples.jsonl")[1]
    assert ["It asks back."] == second["metadata"]["expectations"]


def test_variants_of_an_experiment_are_conditions(project: Project, here: Path) -> None:
    outcome = project.keval("init", "mine", "--from", "lift.experiment.yaml")

    assert (0, "wrote mine/eval.yaml\nmine/eval.yaml: valid; 6 trials (1 sample), 6 judgements by judge\n") == (
        outcome.code,
        outcome.stdout,
    ), outcome.stderr
    assert "the key 'overrides'" in outcome.stderr
    config = yaml.safe_load((here / "mine/eval.yaml").read_text(encoding="utf-8"))
    assert {"none": {}, "all": {"contexts": ["letters", "pdf"]}, "pdf_only": {"contexts": ["pdf"]}} == config[
        "conditions"
    ]
    assert "none" == config["baseline"]
