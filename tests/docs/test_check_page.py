"""The files of docs/check.md are an evaluation, of which `keval check` prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path

import attrs
import pytest

from keval_instrument.examinations import EXAMINATIONS, figures_of
from keval_instrument.settings import CheckSettings
from tests.conftest import Project

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "check.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_shows_what_a_check_finds(project: Project) -> None:
    for name, text in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (project.root / name).write_text(text, encoding="utf-8")
    (command,) = re.findall(r"^```console\nkeval (.*?)\n```", PAGE, re.MULTILINE)
    printed, untrusted = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

    outcome = project.keval(*command.split())

    (judge,) = (DOCS.parent / "examples" / "real-model" / "judge").glob("check-*")
    assert untrusted in project.keval("check", str(judge)).stdout
    assert (1, printed) == (outcome.code, re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "RUN", outcome.stdout))


def test_the_page_says_what_each_figure_and_key_is() -> None:
    written = run_path(str(DOCS / "site" / "tables.py"))["figures"]()
    told, listed = (
        {
            name: (examination, " ".join(text.split()).casefold())
            for name, examination, text in re.findall(pattern, page, re.MULTILINE)
        }
        for pattern, page in (
            (r"^- `(\w+)` \((\w+)\): (.*(?:\n  .*)*)", PAGE),
            (r"^\| `(\w+)` \| (\w+) \| (.*?)\.? \|$", "\n".join(written)),
        )
    )
    figures = {
        name: (examination, text.casefold().rstrip("."))
        for examination in EXAMINATIONS
        for name, text in figures_of([examination]).items()
    }

    assert figures == listed
    assert {name: each for name, each in told.items() if each[0] in EXAMINATIONS}.items() < figures.items()
    assert [] == [name for name in (*EXAMINATIONS, *attrs.fields_dict(CheckSettings)) if f"\n- `{name}`" not in PAGE]
