"""The tests that docs/testing.md shows pass, and it names every check."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keval_testing
from tests.conftest import Project

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_tests_pass(project: Project) -> None:
    # The section about agents runs as it stands, in test_snippets.py.
    text = re.sub(r"^## Agents\n.*?(?=^## )", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    blocks = [block for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if ">>>" not in block]
    (project.root / "test_acme.py").write_text("\n\n".join(blocks), encoding="utf-8")

    told = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "error",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            ".",
            "test_acme.py",
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )

    assert (0, True) == (told.returncode, "3 passed" in told.stdout), told.stdout


def test_it_names_every_check() -> None:
    checks = [name for name in dir(keval_testing) if name.startswith("check_")]

    assert [] == [name for name in checks if f"`{name}(" not in PAGE]
