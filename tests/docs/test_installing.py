"""keval is installed as the README and the page about installing say; tests/installation tries all ways."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from keval.seams.installation import Installation, Origin
from tests.docs.test_snippets import blocks
from tests.installation.conftest import Newcomer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
TWO_AGENTS = "2\n" + "\n" * 4
"""Answers to `keval init`: several agents, and else what it proposes."""


@pytest.mark.slow
@pytest.mark.parametrize(("way", "call"), [("uv add", "uv run keval"), ("uv tool install", "keval")])
def test_the_readme_installs_keval_which_writes_an_evaluation_and_runs_it(tmp_path: Path, way: str, call: str) -> None:
    uv = shutil.which("uv")
    assert uv is not None, "uv is not on the path: pip install uv"
    newcomer = Newcomer(tmp_path, uv)
    (block,) = (each for each in blocks(ROOT / "README.md", "console") if way in each)
    if way == "uv add":
        newcomer.type("uv init --bare --name mine")

    written = newcomer.type(block.replace("PATH/TO/keval", str(ROOT)), typed=TWO_AGENTS)
    (following,) = re.findall(r"^next  (.+)$", written.stdout, re.MULTILINE)
    report = newcomer.type(following)

    assert f"{call} run eval.yaml" == following
    assert "SIMULATED MODEL" in report.stdout


def test_the_page_lists_the_extras_of_keval() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    listed = re.findall(r"^\| `([\w-]+)` \| .+\|$", PAGE, re.MULTILINE)

    assert sorted(project["optional-dependencies"]) == sorted(listed)


def test_the_page_shows_the_line_that_a_message_has(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text('[tool]\nrequirements = [{ name = "keval" }]\n', encoding="utf-8")
    installed = Installation("keval", Origin(), "uv", tmp_path, "python", tmp_path, {})

    (shown,) = re.findall(r"^error: .+ comes with (\S+), which is not installed: `(.+)`$", PAGE, re.MULTILINE)

    assert shown == ("keval-claude-code", installed.line("keval-claude-code"))
