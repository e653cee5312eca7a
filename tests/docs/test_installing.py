"""The page about installing says what the packages have; tests/installation tries all ways."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from keval.seams.installation import Installation, Origin

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")


def test_the_page_lists_the_extras_of_keval() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    part = PAGE.partition("\n## What is installed\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^- `([\w-]+)`", part, re.MULTILINE)

    assert sorted(project["optional-dependencies"]) == sorted(listed)


def test_the_page_shows_the_line_that_a_message_has(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text('[tool]\nrequirements = [{ name = "keval" }]\n', encoding="utf-8")
    installed = Installation("keval", Origin(), "uv", tmp_path, "python", tmp_path, {})

    (shown,) = re.findall(r"^error: .+ comes with (\S+), which is not installed: `(.+)`$", PAGE, re.MULTILINE)

    assert shown == ("keval-claude-code", installed.line("keval-claude-code"))
