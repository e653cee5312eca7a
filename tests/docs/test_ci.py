"""The workflows of docs/ci.md are executed: scripts run as GitHub runs them, in a project with a simulated model."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from tests.conftest import Project

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
CONFIG = """
dataset: {path: questions.jsonl}
agents: {openai: {model: simulated/any}}
metrics: [basic/contains, basic/turns]
gates: [basic/contains >= 0.9, failures <= 5%]
"""
# Answers for `gh`, which the runner has: the number of the last run, and its artifact.
GH = """
case "$1 $2" in
  "run list") test -d "$KEPT" && echo 42 || true ;;
  "run download") test "$3" = 42 && mkdir -p "$7" && cp -r "$KEPT/." "$7" ;;
  *) exit 64 ;;
esac
"""


@attrs.frozen
class Runner:
    """Executes the scripts of a workflow one after another, with what GitHub passes from step to step."""

    root: Path
    steps: list[dict[str, Any]]
    tools: Path

    def run(self, event: str) -> dict[str, int]:
        """Run the job for an event; the exit code of each step with a script."""
        variables = self.root / "github-env"
        codes: dict[str, int] = {}
        variables.write_text("", encoding="utf-8")
        environ = {
            "PATH": os.pathsep.join([str(self.tools), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "VIRTUAL_ENV": sys.prefix,
            "GITHUB_ENV": str(variables),
            "GITHUB_STEP_SUMMARY": str(self.root / "step-summary.md"),
            "KEPT": str(self.root.parent / "artifact"),
        }
        for step in self.steps:
            failed = any(codes.values())
            if "run" not in step or not self._wanted(step.get("if", ""), event, failed=failed):
                continue
            passed_on = dict(line.split("=", 1) for line in variables.read_text(encoding="utf-8").splitlines())
            script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            env = {**os.environ, **environ, **passed_on}
            codes[step["name"]] = subprocess.run(script, cwd=self.root, env=env, check=False).returncode
        return codes

    def _wanted(self, condition: str, event: str, *, failed: bool) -> bool:
        if condition == "${{ !cancelled() }}":
            return True
        assert condition in ("", "github.event_name == 'pull_request'")
        return not failed and (not condition or event == "pull_request")


@pytest.fixture
def runner(project: Project, tmp_path: Path) -> Runner:
    if shutil.which("uv") is None:
        pytest.skip("the workflow installs with uv, which is not on the path")
    root, tools = tmp_path / "checkout", tmp_path / "tools"
    root.mkdir()
    tools.mkdir()
    (tools / "gh").write_text(f"#!/bin/sh{GH}", encoding="utf-8")
    (tools / "gh").chmod(0o755)
    (root / "requirements.txt").write_text("# keval is here already\n", encoding="utf-8")
    (root / "eval.yaml").write_text(CONFIG, encoding="utf-8")
    return Runner(root, steps(), tools)


def blocks() -> list[Any]:
    page = PAGE.read_text(encoding="utf-8")
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]


def steps() -> list[dict[str, Any]]:
    """The steps of the page's workflow."""
    (workflow,) = (block for block in blocks() if "jobs" in block)
    told: list[dict[str, Any]] = workflow["jobs"]["evaluate"]["steps"]
    return told


def replaying_steps() -> list[dict[str, Any]]:
    """The steps with a recording: the workflow's up to Install, and those that the page lists for it."""
    names = [step.get("name") for step in steps()]
    (part,) = (block for block in blocks() if "steps" in block)
    return [*steps()[: names.index("Install") + 1], *part["steps"]]


def ask(runner: Runner, answer: str) -> None:
    lines = ({"id": f"q{n}", "question": f"What is {n}?", "answer": answer} for n in range(3))
    (runner.root / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.mark.slow
def test_a_pull_request_is_held_against_the_run_that_main_kept(runner: Runner) -> None:
    ask(runner, "not sure")  # as the simulated model says it is of all but the weather
    on_main = runner.run("push")
    (upload,) = [step for step in runner.steps if step.get("uses", "").startswith("actions/upload-artifact@")]
    (runner.root / upload["with"]["path"]).rename(runner.root.parent / "artifact")
    (kept,) = (runner.root.parent / "artifact").glob("*/*/manifest.json")
    ask(runner, "something else")

    on_branch = runner.run("pull_request")

    assert dict.fromkeys(["Install", "Check the config", "Evaluate", "Summarise"], 0) == on_main
    assert {"Install": 0, "Check the config": 0, "Fetch the latest run of main": 0} == dict([*on_branch.items()][:3])
    assert {"Evaluate": 1, "Summarise": 1} == dict([*on_branch.items()][3:])
    (summary,) = runner.root.glob("results/*/*/summary.json")
    gates = json.loads(summary.read_text(encoding="utf-8"))["gates"]
    assert ["failed"] == [gate["verdict"] for gate in gates if gate["written"] == "basic/contains >= 0.9"]
    against = [gate["against"] for gate in gates if gate["kind"] == "regression"]
    assert [kept.parent.name] * 2 == against
    told = html.unescape((runner.root / "step-summary.md").read_text(encoding="utf-8"))
    assert "basic/contains >= 0.9" in told
    assert kept.parent.name in told


@pytest.mark.slow
def test_a_committed_recording_tells_whether_our_side_changed(runner: Runner) -> None:
    ask(runner, "not sure")
    page = PAGE.read_text(encoding="utf-8").replace("oslo,tokyo", "q0,q2")
    make = next(block for block in re.findall(r"^```console\n(.*?)^```", page, re.M | re.S) if "trim" in block)
    replaying = attrs.evolve(runner, steps=[{"name": "Make", "run": make}])
    assert {"Make": 0} == replaying.run("push")
    shutil.rmtree(runner.root / "results")
    replaying = attrs.evolve(runner, steps=replaying_steps())

    same = replaying.run("pull_request")
    (runner.root / "eval.yaml").write_text(f"{CONFIG}conditions: {{baseline: {{system_prompt: Be terse.}}}}\n")
    changed = replaying.run("pull_request")

    assert {"Install": 0, "Replay": 0, "Compare": 0} == same
    assert {"Install": 0, "Replay": 1, "Compare": 1} == changed


def test_actions_are_pinned_by_their_major_version(runner: Runner) -> None:
    used = [step["uses"] for step in (*runner.steps, *replaying_steps()) if "uses" in step]

    assert used
    assert [] == [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", action)]
