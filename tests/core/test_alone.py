"""The core runs with an agent alone, and says which package has what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Commands of one process, as starting it takes most of the time.
ALONE = """
import json, sys
from pathlib import Path
import importlib_metadata
from click.testing import CliRunner

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

told = []
for config, args in json.load(sys.stdin):
    Path("eval.yaml").write_text(config, encoding="utf-8")
    done = CliRunner().invoke(main, args, prog_name="keval", catch_exceptions=False)
    told.append((done.exit_code, done.stdout, done.stderr))
json.dump(told, sys.stdout)
"""
CONFIG = """
dataset: {path: questions.jsonl}
agents: {mine: {type: recorded, path: answers.jsonl}}
metrics: [{basic/equals: {expected: '4'}}]
"""


DRY_RUN = ["run", "eval.yaml", "--dry-run"]
LACKING: list[tuple[str, list[str], str]] = [
    ("", ["show", "latest"], "no command 'show'; it comes with keval-report: `"),
    ("agent: {type: recorded}", DRY_RUN, "the key 'agent' comes with keval-mcp, "),
    ("gates: [basic/equals >= 0.8]", DRY_RUN, "keval-analysis, which is not installed: `"),
    ("contexts: {files: {type: stdio}}", DRY_RUN, "the context 'stdio' comes with keval-mcp, "),
    ("contexts: {a: {from: b}, b: {type: stdio}}", DRY_RUN, "the reader of changes "),
    ("conditions: {a: {system_prompt: '{{ id }}'}}", DRY_RUN, "comes with keval-programs, "),
    ("budget: {trials: 1}", DRY_RUN, "eval.yaml:5:9: the meter 'budget' comes with keval-gateway, "),
    ("execution: {limits: {tokens: 9}}", ["run", "eval.yaml"], "the meter 'limits' comes with keval-gateway, "),
    ("judges: {tone: {type: openai}}", DRY_RUN, "the judge 'openai' comes with keval-judges, "),
]


def alone(folder: Path, commands: list[tuple[str, list[str]]]) -> Any:
    """Run commands, each with its lines of the config, where no other package is; returns codes and what is told."""
    (folder / "questions.jsonl").write_text('{"id": "a", "question": "2 + 2?"}\n', encoding="utf-8")
    (folder / "answers.jsonl").write_text('{"id": "a", "response": "4"}\n', encoding="utf-8")
    given = json.dumps([(f"{CONFIG}{config}\n", args) for config, args in commands])
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=folder, input=given, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def test_it_runs_and_goes_on(tmp_path: Path) -> None:
    commands = (["run", "eval.yaml"], ["resume", "latest"], ["score", "latest"])

    told = alone(tmp_path, [("", args) for args in commands])

    assert [0, 0, 0] == [code for code, _, _ in told], told
    assert "basic/equals: 1.00" in told[0][1]
    (run,) = tmp_path.glob("results/*/*/scores.jsonl")
    assert '"value":1.0' in run.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What keval says of each config or command that lacks something."""
    return alone(tmp_path_factory.mktemp("alone"), [(config, args) for config, args, _ in LACKING])


@pytest.mark.parametrize("number", range(len(LACKING)), ids=[lacking for *_, lacking in LACKING])
def test_what_is_missing_is_told_with_its_package(told: Any, number: int) -> None:
    code, _, stderr = told[number]

    assert (2, True) == (code, LACKING[number][2] in stderr), stderr
