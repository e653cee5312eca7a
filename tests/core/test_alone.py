"""The core runs with an agent alone, and says which package has what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ALONE = """
import sys
import importlib_metadata

HERE = {"keval-core", "keval-recorded", "keval-metrics-basic"}
found = [point for point in importlib_metadata.entry_points() if point.dist.name in HERE]
importlib_metadata.entry_points = lambda: found


class Missing:
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package.startswith("keval_") and package.replace("_", "-") not in HERE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
from keval.cli import main

main(sys.argv[1:], prog_name="keval")
"""
CONFIG = """
dataset: {path: questions.jsonl}
agents: {mine: {type: recorded, path: answers.jsonl}}
metrics: [{basic/equals: {expected: '4'}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "eval.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text('{"id": "a", "question": "2 + 2?"}\n', encoding="utf-8")
    (tmp_path / "answers.jsonl").write_text('{"id": "a", "response": "4"}\n', encoding="utf-8")
    return tmp_path


def alone(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ALONE, *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_it_runs_and_goes_on(folder: Path) -> None:
    ran = alone(folder, "run", "eval.yaml")
    resumed = alone(folder, "resume", "latest")
    scored = alone(folder, "score", "latest")

    assert (0, 0, 0) == (ran.returncode, resumed.returncode, scored.returncode), ran.stderr + scored.stderr
    assert "basic/equals: 1.00" in ran.stdout
    (run,) = folder.glob("results/*/*/scores.jsonl")
    assert '"value":1.0' in run.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("config", "args", "told"),
    [
        ("", ["show", "latest"], "no command 'show'; it comes with keval-report: `"),
        ("agent: {type: recorded}", ["run", "eval.yaml", "--dry-run"], "the key 'agent' comes with keval-mcp, "),
        (
            "gates: [basic/equals >= 0.8]",
            ["run", "eval.yaml", "--dry-run"],
            "keval-analysis, which is not installed: `",
        ),
        (
            "contexts: {files: {type: stdio}}",
            ["run", "eval.yaml", "--dry-run"],
            "the context 'stdio' comes with keval-mcp, ",
        ),
        (
            "contexts: {a: {from: b}, b: {type: stdio}}",
            ["run", "eval.yaml", "--dry-run"],
            "the reader of changes ",
        ),
        (
            "conditions: {a: {system_prompt: '{{ id }}'}}",
            ["run", "eval.yaml", "--dry-run"],
            "comes with keval-programs, ",
        ),
        (
            "budget: {trials: 1}",
            ["run", "eval.yaml", "--dry-run"],
            "eval.yaml:5:9: the meter 'budget' comes with keval-gateway, ",
        ),
        ("execution: {limits: {tokens: 9}}", ["run", "eval.yaml"], "the meter 'limits' comes with keval-gateway, "),
        (
            "judges: {tone: {type: openai}}",
            ["run", "eval.yaml", "--dry-run"],
            "the judge 'openai' comes with keval-judges, ",
        ),
    ],
)
def test_what_is_missing_is_told_with_its_package(folder: Path, config: str, args: list[str], told: str) -> None:
    (folder / "eval.yaml").write_text(f"{CONFIG}{config}\n", encoding="utf-8")

    outcome = alone(folder, *args)

    assert (2, True) == (outcome.returncode, told in outcome.stderr), outcome.stderr
