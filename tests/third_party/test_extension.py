"""A package of a third party adds a key, an option, a check of plans, and a part of summaries and of reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import Outcome, Project

PACKAGE = Path(__file__).parent / "acme_extension"
CONFIG = """\
dataset: {path: questions.jsonl}
agents: {recorded: {path: answers.jsonl}}
banned: [foo, Foo]
metrics: [basic/latency]
"""
SEVERAL = """
import json, sys
from click.testing import CliRunner
from keval.cli import main

outcomes = [CliRunner().invoke(main, args) for args in json.loads(sys.argv[1])]
print(json.dumps([(each.exit_code, each.stdout, each.stderr) for each in outcomes]))
"""
"""Runs several commands, so that the package is looked for once."""


@pytest.fixture
def banning(project: Project) -> Project:
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl='{"id": "a", "question": "Who?", "answer": "Ada"}\n{"id": "b", "question": "What?"}\n',
        answers_jsonl='{"id": "a", "response": "Ada, of foo"}\n{"id": "b", "response": "bar and <b>Foo</b>"}\n',
    )
    return project


def with_package(project: Project, *commands: Sequence[str]) -> list[Outcome]:
    """Run commands in one process, in which the package is found as if it had been installed."""
    described = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = project.root / "site" / "acme_extension-3.0.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {described['version']}\n", encoding="utf-8"
    )
    points = (
        f"[{group}]\n" + "\n".join(f"{name} = {target}" for name, target in names.items())
        for group, names in described["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
    path = os.pathsep.join([str(metadata.parent), str(PACKAGE / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return [Outcome(*each) for each in json.loads(done.stdout)]


def test_a_package_adds_to_configs_commands_summaries_and_reports(banning: Project) -> None:
    ran, scored, text, markdown, _, schema = with_package(
        banning,
        ["run", "eval.yaml", "--ban", "bar", "--json"],
        ["score", "latest", "--quiet"],
        ["report", "latest"],
        ["report", "latest", "--markdown"],
        ["report", "latest", "--html", "page.html"],
        ["schema"],
    )

    part = {"answers": 2, "counts": {"foo": 2, "Foo": 2, "bar": 1}}
    assert (0, 0) == (ran.code, scored.code), ran.stderr + scored.stderr
    assert "note: eval.yaml:3:1: a word is banned twice" in ran.stderr
    assert part == ran.data["parts"]["banned words"] == banning.read("summary.json")["parts"]["banned words"]
    assert ["foo", "Foo", "bar"] == banning.read("manifest.json")["config"]["banned"]
    page = (banning.root / "page.html").read_text(encoding="utf-8")
    for told in (text.stdout, markdown.stdout, page):
        assert 1 == told.count("banned words")
        assert 1 == told.count("bar is in 1 of 2 answers")
    described = schema.data["properties"]["banned"]
    assert {"type": "array", "items": {"type": "string"}} == described

    # What the package has added is left out where it is not installed, and the rest of the run is read.
    without = banning.keval("report", "latest", "--json")
    assert part == without.data["parts"]["banned words"]
    assert "banned words" not in banning.keval("report", "latest").stdout

    # The run may be of others, and have anything there.
    path = banning.run_directory() / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "parts": {"banned words": 7}}), "utf-8")
    (damaged,) = with_package(banning, ["report", "latest"])
    assert (2, 1) == (damaged.code, damaged.stderr.count("the part 'banned words' of summary.json cannot be shown: "))


def test_what_a_package_checks_is_told_at_its_place(banning: Project) -> None:
    (banning.root / "wrong.yaml").write_text(CONFIG.replace("[foo, Foo]", "[ada, ' ', 3]"), encoding="utf-8")
    (banning.root / "golden.yaml").write_text(CONFIG.replace("[foo, Foo]", "[ada]"), encoding="utf-8")
    (banning.root / "blank.yaml").write_text(CONFIG.replace("Foo", "' '"), encoding="utf-8")

    wrong, blank, golden = with_package(
        banning, *(["validate", f"{name}.yaml"] for name in ("wrong", "blank", "golden"))
    )

    assert [2, 2, 2] == [wrong.code, blank.code, golden.code]
    assert "wrong.yaml:3:20: expected a text, got 3" in wrong.stderr
    assert "blank.yaml:3:15: expected a word" in blank.stderr
    assert "golden.yaml:3:1: the golden answer of 'a' has 'ada'" in golden.stderr


def test_without_the_package_its_key_and_its_option_are_unknown(banning: Project) -> None:
    refused = banning.keval("validate", "eval.yaml")
    asked = banning.keval("run", "eval.yaml", "--ban", "bar")

    told, _, known = refused.stderr.partition("; known keys: ")
    assert (2, "error: eval.yaml:3:1: unknown key 'banned'") == (refused.code, told)
    assert {"gates"} == {"gates", "banned", "execution.until"} & {*known.strip().split(", ")}
    assert (2, True) == (asked.code, "No such option '--ban'" in asked.stderr)
