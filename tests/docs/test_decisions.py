"""The decisions are all in the index, and all say what the index promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
DECISIONS = sorted(FOLDER.glob("[0-9]*.md"))


def test_the_index_has_every_decision_once_by_its_title() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    titles = [path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in DECISIONS]

    rows = re.findall(r"^- \[(.+)\]\((.+)\)$", index, re.MULTILINE)

    assert list(zip(titles, [path.name for path in DECISIONS], strict=True)) == rows


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_number_its_state_and_its_parts(path: Path) -> None:
    page = path.read_text(encoding="utf-8")

    assert page.startswith(f"# {path.stem[:4]}: ")
    assert re.search(r"^(Accepted|Superseded by \d{4}), \d{4}-\d\d-\d\d\.$", page, re.MULTILINE)
    assert ["Context", "Decision", "Alternatives", "Consequences"] == re.findall(r"^## (.+)$", page, re.MULTILINE)
