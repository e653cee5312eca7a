"""The workflow of docs/ci.md is executed: the steps of action.yml run in bash as GitHub runs them.

The repository is one that the test makes, with a server's answers and a skill; the API of GitHub is a stand-in.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from tests.code_host import CodeHost, github_job, pull_request, serving
from tests.conftest import Project
from tests.stdio_server import look_up

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
CONFIG = """
dataset: {path: questions.jsonl}
agents: {openai: {model: simulated/any}}
contexts:
  tarn: {type: stdio, command: python, args: [server.py]}
  manual: {type: skill, path: skills/manual}
conditions:
  baseline: {}
  with_server: {contexts: [tarn]}
  with_skill: {contexts: [manual]}
metrics: [basic/contains]
gates:
  - with_server/basic/contains >= 0.9
  - with_skill/basic/contains >= 0.9
"""
SKILL = "---\nname: manual\ndescription: How to run Tarn.\n---\nTarn listens on port {port}.\n"
GIT = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@attrs.frozen
class Runner:
    """Executes the steps of the action, with the inputs of the page's workflow and what one step passes to the next."""

    root: Path
    host: CodeHost

    @property
    def checkout(self) -> Path:
        return self.root / "checkout"

    def git(self, *args: str) -> str:
        environ = {**os.environ, **GIT}
        return subprocess.run(
            ["git", *args], cwd=self.root / "origin", env=environ, capture_output=True, text=True, check=True
        ).stdout.strip()

    def push(self, **files: str) -> str:
        """Commit files on top of what `main` has; return the commit."""
        self.git("checkout", "-q", "--detach", "main")
        for path, text in files.items():
            (self.root / "origin" / path).write_text(text, encoding="utf-8")
        self.git("commit", "-q", "--allow-empty", "-am", "change")
        return self.git("rev-parse", "HEAD")

    def run(self, sha: str, repository: str = "ours/tarn") -> dict[str, Any]:
        """Run the job of a pull request; the exit code of each step with a script, and what `Evaluate` printed."""
        (workflow,) = (data for text in blocks("yaml") if "jobs" in (data := yaml.safe_load(text)))
        action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
        (step,) = workflow["jobs"]["evaluate"]["steps"]
        assert step["with"].keys() <= action["inputs"].keys()
        inputs = {name: each.get("default", "") for name, each in action["inputs"].items()} | step["with"]
        environ = {
            **{name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"},
            **github_job(self.root, self.host, {"pull_request": pull_request(repository, sha)}),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_PATH": str(self.root / "path"),
            "PATH": os.pathsep.join([str(self.root / "tools"), str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        del environ["GITHUB_TOKEN"]
        known: dict[str, Any] = {"inputs": inputs, "github": {"token": "job-token"}, "steps": {}}
        done: dict[str, Any] = {}
        for each in action["runs"]["steps"]:
            condition = str(each.get("if", "")).removeprefix("${{").removesuffix("}}")
            failed = any(code for name, code in done.items() if name != "said")
            if (failed and "!cancelled()" not in condition) or not self.holds(condition or "true", known):
                continue
            if each.get("uses", "").startswith("actions/checkout@"):
                shutil.rmtree(self.checkout, ignore_errors=True)
                self.git("clone", "-q", ".", str(self.checkout))
                self.git("-C", str(self.checkout), "checkout", "-q", self.value(each["with"]["ref"], known))
            elif "uses" in each:
                done[each["uses"].partition("@")[0]] = 0
            else:
                env = environ | {name: self.value(text, known) for name, text in each.get("env", {}).items()}
                (self.root / "outputs.txt").unlink(missing_ok=True)
                script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", each["run"]]
                folder = self.checkout if "working-directory" in each else self.root
                ended = subprocess.run(script, cwd=folder, env=env, capture_output=True, text=True)
                done[each["name"]] = ended.returncode
                done["said"] = ended.stdout + ended.stderr if each["name"] == "Evaluate" else done.get("said", "")
                known["steps"][each.get("id")] = self.outputs()
        return done

    def outputs(self) -> dict[str, str]:
        path = self.root / "outputs.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines)

    def holds(self, condition: str, known: dict[str, Any]) -> bool:
        """Whether an expression of GitHub's that has only names, texts, `&&` and `==` holds."""
        return all(self.term(term.strip(), known) for term in condition.split("&&"))

    def term(self, term: str, known: dict[str, Any]) -> bool:
        if term in ("true", "!cancelled()"):
            return True
        name, _, text = term.partition(" == ")
        return self.value(f"${{{{ {name} }}}}", known) == text.strip("'") if text else bool(self.value(term, known))

    def value(self, text: str, known: dict[str, Any]) -> str:
        """A text with its expressions filled in, or what a name alone stands for."""
        if "${{" not in text:
            text = f"${{{{ {text} }}}}"

        def filled(match: re.Match[str]) -> str:
            found: Any = known
            for name in match[1].replace(".outputs", "").split("."):
                found = found.get(name, {})
            return str(found or "")

        return re.sub(r"\$\{\{ ([\w.]+) \}\}", filled, text)


@pytest.fixture
def runner(project: Project) -> Iterator[Runner]:
    root, tools = project.root, project.root / "tools"
    tools.mkdir()
    for name in ("uv", "pip"):  # all is installed already
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {root}/installed\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    (root / "origin" / "skills" / "manual").mkdir(parents=True)
    with serving(CodeHost()) as host:
        found = Runner(root, host)
        found.git("init", "-q", "-b", "main")
        files = {
            "eval.yaml": CONFIG,
            "questions.jsonl": '{"id": "port", "question": "Which port does Tarn listen on?", "answer": "7443"}\n'
            '{"id": "tarn", "question": "On which port is Tarn?", "answer": "7443"}\n',
            "server.py": look_up("Tarn listens on port 7443."),
            "skills/manual/SKILL.md": SKILL.format(port=7443),
            "requirements.txt": "",
            ".gitignore": "results/\n",
        }
        for path, text in files.items():
            (root / "origin" / path).write_text(text, encoding="utf-8")
        found.git("add", "-A")
        found.git("commit", "-qm", "base")
        yield found


@pytest.mark.slow
def test_a_pull_request_is_told_what_it_did_and_a_fork_replays_the_recording(runner: Runner) -> None:
    same = runner.run(runner.push())
    server = runner.run(runner.push(**{"server.py": look_up("Tarn listens on port 1.")}))
    skill = runner.run(runner.push(**{"skills/manual/SKILL.md": SKILL.format(port=1)}))

    steps = {"astral-sh/setup-uv": 0, "Install": 0, "Find the commit": 0, "Set up": 0}
    ends = {"Comment": 0, "actions/upload-artifact": 0}
    for code, done in ((0, same), (1, server), (1, skill)):
        said = done.pop("said")
        assert {**steps, "Evaluate": code, **ends} == done, said
        done["errors"] = [line.partition("title")[0] for line in said.splitlines() if line.startswith("::error")]
    assert ([], ["::error file=eval.yaml,line=13,col=5,"]) == (same["errors"], server["errors"])
    assert ["::error file=eval.yaml,line=14,col=5,", "::error file=skills/manual/SKILL.md,line=1,"] == skill["errors"]
    # One comment, which is about the last commit.
    (comment,) = runner.host.of()
    assert "**failed** | with\\_skill/basic/contains" in comment
    assert runner.git("rev-parse", "--short=12", "HEAD") in comment
    assert f"uv tool install {ROOT}\n" in (runner.root / "installed").read_text(encoding="utf-8")

    lacking = runner.run(
        runner.push(**{"eval.yaml": CONFIG.replace("simulated/any", "openai/gpt-4o-mini")}), "eve/tarn"
    )
    make, replay = blocks("console")[-2:]
    runner.git("checkout", "-q", "main")
    for script in (make.replace("oslo,tokyo", "port,tarn"), replay):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(
            ["bash", "-ec", script], cwd=runner.root / "origin", env={**os.environ, "PATH": path}, check=True
        )
    runner.git("add", "-A")
    runner.git("commit", "-qm", "record")
    replayed = runner.run(runner.push(), "eve/tarn")
    described = SKILL.format(port=7443).replace("How to run", "How to stop")
    changed = runner.run(runner.push(**{"skills/manual/SKILL.md": described}), "eve/tarn")
    wrong = runner.run(runner.push(**{"eval.yaml": f"{CONFIG}seed_: 1"}), "eve/tarn")

    assert "keval did not run: this pull request gets no OPENAI_API_KEY, as it is from a fork" in lacking["said"]
    assert (0, False, False) == (lacking["Evaluate"], "Comment" in lacking, "actions/upload-artifact" in lacking)
    assert (0, False, True) == (replayed["Evaluate"], "Comment" in replayed, "actions/upload-artifact" in replayed)
    # A gate without a score fails it, or the failed trials do.
    assert changed["Evaluate"] in (1, 3)
    told = "::error file=eval.yaml,line=10,col=3,title=keval::2 of 2 trials of openai failed (replay: replay_miss)"
    assert told in changed["said"], changed["said"]
    assert (2, True) == (wrong["Evaluate"], "::error file=eval.yaml,line=15,col=1,title=keval" in wrong["said"])
    assert 1 == len(runner.host.of())
