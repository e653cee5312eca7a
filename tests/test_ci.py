"""The exit code of `.ci/run`. The tools that it calls, such as uv and npm, are replaced by ones that do nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"

UV = """#!/usr/bin/env bash
case "$*" in
    *"${BROKEN:-nothing is broken}"*) echo "broken: $*"; exit 1 ;;
    "venv "*) mkdir -p "${@: -1}/bin"; for name in keval python; do cp "$(command -v npm)" "${@: -1}/bin/$name"; done ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the script, with `examples/`, and with tools that do nothing."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    (tmp_path / "examples").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("apt-get", "bwrap", "chromium", "npm", "pip", "tmux", "uv"):
        (tmp_path / "bin" / name).write_text(UV if name == "uv" else "#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("broken", "ends", "last"),
    [
        ("", 0, "-k ray_executor"),
        ("pytest -m slow", 1, "broken: run --group dev pytest -m slow"),
        ("tests/plugins/ray", 1, "broken: run --group dev --extra ray"),  # in the background, told at the end
    ],
)
def test_ci_ends_as_its_steps_did(machine: Path, broken: str, ends: int, last: str) -> None:
    environ = {**os.environ, "PATH": f"{machine / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    environ |= {"BROKEN": broken} if broken else {}

    done = subprocess.run(["bash", machine / ".ci" / "run"], env=environ, capture_output=True, text=True, timeout=60)

    assert done.returncode == ends, done.stdout + done.stderr
    assert last in done.stdout.splitlines()[-1]
