"""The pages about agents of the user's: their files, written into an empty folder, run with their commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Project, serve_here
from tests.docs.test_snippets import AGENTS, FILE

PAGES = sorted(AGENTS.glob("*.md"))
_COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def files_of(page: Path) -> dict[str, str]:
    """The files of a page, by name."""
    return dict(FILE.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [page for page in PAGES if "eval.yaml" in files_of(page)], ids=lambda page: page.stem)
def test_the_files_of_a_page_are_all_that_it_takes(
    page: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_here(monkeypatch)
    for name, text in files_of(page).items():
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text(text, encoding="utf-8")
    commands = [line for block in _COMMANDS.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]

    outcomes = [project.keval(*shlex.split(line)[1:]) for line in commands if line.startswith("keval run")]

    assert outcomes
    assert [0] * len(outcomes) == [outcome.code for outcome in outcomes], outcomes[0].stderr
