"""keval is installed as the README and the page about installing say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from keval.seams.installation import Installation, Origin

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
NOT_COPIED = (".git", ".venv", ".*_cache", "__pycache__", "dist", "results", "uv.lock")
OF_THIS_ENVIRONMENT = ("PYTHONPATH", "UV_RUN_RECURSION_DEPTH", "VIRTUAL_ENV")
TWO_AGENTS = "2\n" + "\n" * 4
"""Answers to `keval init`: several agents, and else what it proposes."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, as uv would take an earlier build of a folder that it knows."""
    folder = tmp_path_factory.mktemp("clone") / "keval"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
@pytest.mark.parametrize("way", ["uv add", "uv tool install"])
def test_the_readme_installs_keval_which_writes_an_evaluation_and_runs_it(
    way: str, tmp_path: Path, clone: Path
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = (each for each in re.findall(r"^```console\n(.*?)^```", readme, re.MULTILINE | re.DOTALL) if way in each)
    cache = subprocess.run(["uv", "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    programs, project = tmp_path / "bin", tmp_path / "project"
    project.mkdir()
    inherited = {name: value for name, value in os.environ.items() if name not in OF_THIS_ENVIRONMENT}
    own = {"HOME": tmp_path, "UV_CACHE_DIR": cache, "UV_TOOL_DIR": tmp_path / "tools", "UV_TOOL_BIN_DIR": programs}
    path = f"{programs}{os.pathsep}{_path_without_this_environment()}"
    environ = {**inherited, **{name: str(value) for name, value in own.items()}, "PATH": path}

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=project,
            env=environ,
            input=TWO_AGENTS,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, f"{command}{done.stdout}{done.stderr}"
        return done.stdout

    if way == "uv add":
        run("uv init --bare")
    (following,) = re.findall(r"^next  (.+)$", run(block.replace("PATH/TO/keval", str(clone))), re.MULTILINE)
    report = run(following)

    assert following == ("uv run keval run eval.yaml" if way == "uv add" else "keval run eval.yaml")
    assert "SIMULATED MODEL" in report


def _path_without_this_environment() -> str:
    here = str(Path(sys.executable).parent)
    return os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != here)


def test_the_page_lists_the_extras_of_keval() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    listed = re.findall(r"^\| `([\w-]+)` \| .+\|$", PAGE, re.MULTILINE)

    assert sorted(project["optional-dependencies"]) == sorted(listed)


def test_the_page_shows_the_line_that_a_message_has(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text('[tool]\nrequirements = [{ name = "keval" }]\n', encoding="utf-8")
    installed = Installation("keval", Origin(), "uv", tmp_path, "python", tmp_path, {})

    (shown,) = re.findall(r"^error: .+ comes with (\S+), which is not installed: `(.+)`$", PAGE, re.MULTILINE)

    assert shown == ("keval-claude-code", installed.line("keval-claude-code"))
