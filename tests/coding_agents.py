"""The recipes of docs/agents/coding-agents.md, and the real programs that they run.

`KEVAL_AGENTS` names a folder where `npm install` was run with the packages that the page names; without it, the tests
that need them are skipped. `.ci/run` makes such a folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

__all__ = ["RECIPES", "installed", "program"]

_PAGE = Path(__file__).parents[1] / "docs" / "agents" / "coding-agents.md"


def _recipes() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for block in re.findall(r"^```yaml\n(.*?)^```", _PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        assert len(block.splitlines()) <= 32, block
        found |= yaml.safe_load(block)["agents"]
    return found


RECIPES = _recipes()
"""The options of each agent, by its label."""


def installed() -> str:
    """Return a PATH with the programs; skips the test where they are not installed."""
    root = os.environ.get("KEVAL_AGENTS")
    if not root:
        pytest.skip("KEVAL_AGENTS names no folder with coding agents from npm")
    folder = Path(root, "node_modules", ".bin")
    for options in RECIPES.values():
        program = folder / options["command"][0]
        assert program.exists(), f"KEVAL_AGENTS={root}: there is no {program}"
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def program(name: str) -> tuple[dict[str, Any], str]:
    """Return the options of a coding agent that works in a workspace, and a PATH with it.

    Skips the test where it is not installed. opencode wants ripgrep, which Codex brings.
    """
    path = installed()
    if name == "claude-code":
        pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")
        return {"type": name}, path
    (ripgrep, *_) = Path(os.environ["KEVAL_AGENTS"]).glob("node_modules/@openai/codex-*/vendor/*/codex-path")
    return RECIPES[name], f"{path}{os.pathsep}{ripgrep}"
