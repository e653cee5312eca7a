"""The files of docs/verify.md are an evaluation, of which `keval check` prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from keval.seams import registry
from tests.conftest import Project

PAGE = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")


def test_the_page_shows_what_the_oracle_finds(project: Project) -> None:
    files = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    for name, text in files.items():
        (project.root / name).write_text(text, encoding="utf-8")
    (printed,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

    outcome = project.keval("check", "shop.yaml", "--only", "verify")

    assert {"shop.yaml", "tasks.yaml", "checks.py"} == files.keys()
    assert (1, printed) == (outcome.code, outcome.stdout)


def test_the_page_names_every_kind_and_its_options() -> None:
    rows = dict(re.findall(r"^- `(\w+)`: (.*(?:\n  .*)*)", PAGE, re.MULTILINE))
    kinds = {each.name: registry.load(each) for each in registry.components("keval.checks")}

    assert rows.keys() == kinds.keys()
    for name, kind in kinds.items():
        told = f"{rows[name]} `timeout_seconds` `sandboxed`"
        assert [] == [field.name for field in attrs.fields(kind) if field.init and f"`{field.name}" not in told]
