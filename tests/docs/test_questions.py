"""The page about questions shows what its commands print."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.docs.test_snippets import ROOT, blocks


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_here")
def test_the_page_about_questions_shows_what_its_commands_print(project: Project) -> None:
    shutil.copytree(ROOT / "examples" / "context-ab", project.root, dirs_exist_ok=True)
    page = ROOT / "docs" / "questions.md"
    generate, review = (block.strip().removeprefix("keval ") for block in blocks(page, "console"))
    config = (project.root / "context-ab.yaml").read_text(encoding="utf-8")

    made = project.keval(*shlex.split(generate))
    project.write(**{"context-ab_yaml": config.replace("path: questions.jsonl", "path: generated.jsonl")})
    decided = project.keval(*shlex.split(review), "--accept-all")

    assert (0, blocks(page, "text")) == (made.code, [made.stdout])
    assert (0, "none left; next: keval run context-ab.yaml\n") == (decided.code, decided.stderr)
    assert 8 == len(Path("generated.jsonl").read_text(encoding="utf-8").splitlines())
