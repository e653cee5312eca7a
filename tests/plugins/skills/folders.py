"""Writes skills and plugins for tests."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import attrs

from keval import Sample
from keval.plugin import Conventions, TrialInfo

PDF_BODY = """
# PDF

Read the form fields before you fill any of them.

1. Run `scripts/fields.py` with the path of the form.
2. Write the values as JSON, with the names of the fields as keys.
"""


def write(root: Path, **files: str) -> Path:
    """Write files; `__` in a name stands for `/`, and `_md` for `.md`."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_md", ".md").replace("_py", ".py").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return root


def skill(root: Path, name: str = "pdf", body: str = PDF_BODY, description: str = "Fills PDF forms.") -> Path:
    """Write a skill and return its folder."""
    return write(root / name, SKILL_md=f"---\nname: {name}\ndescription: {description}\n---\n{body}")


CLAUDE_CODE = Conventions(instructions="CLAUDE.md", skills=".claude/skills", plugins=True)


def trial(workspace: Path | None = None, conventions: Conventions | None = None) -> TrialInfo:
    """Return what a context is told of an attempt."""
    return attrs.evolve(
        TrialInfo("t", Sample("s", "q"), "agent", "condition"), workspace=workspace, conventions=conventions
    )
