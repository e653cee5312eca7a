"""The ways to install keval that the README shows lead to a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_snippets import blocks
from tests.installation.conftest import ROOT, Newcomer

pytestmark = pytest.mark.installation

TWO_AGENTS = "2\n" + "\n" * 4
"""Answers to `keval init`: several agents, and else what it proposes."""


@pytest.mark.parametrize(("way", "call"), [("uv add", "uv run keval"), ("uv tool install", "keval")])
def test_the_readme_installs_keval_which_writes_an_evaluation_and_runs_it(
    newcomer: Newcomer, clone: Path, way: str, call: str
) -> None:
    (block,) = (each for each in blocks(ROOT / "README.md", "console") if way in each)
    if way == "uv add":
        newcomer.type("uv init --bare --name mine")

    written = newcomer.type(block.replace("PATH/TO/keval", str(clone)), typed=TWO_AGENTS)
    (following,) = re.findall(r"^next  (.+)$", written.stdout, re.MULTILINE)
    report = newcomer.type(following)

    assert f"{call} run eval.yaml" == following
    assert "SIMULATED MODEL" in report.stdout
