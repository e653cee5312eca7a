"""Each tutorial is executed as its reader would: its files are written, its commands are run in order, in one folder.

What it shows of the output may leave out lines, and parts of a line, such as a plot or seconds: the words and figures
of each line must stand in this order in a line that was printed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
_BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<language>\w+)\n(?P<content>.*?)^```", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`([\w./-]+\.\w+)`")
_TOKEN = re.compile(r"[^\W\d_]+|[-+−±]?\d+(?:[.,]\d+)*")


def missing(shown: str, printed: str) -> Iterator[str]:
    """Yield the lines that are shown and were not printed."""
    lines = [_TOKEN.findall(line) for line in printed.splitlines()]
    for line in shown.splitlines():
        if not any(in_order(_TOKEN.findall(line), each) for each in lines):
            yield line


def in_order(wanted: list[str], found: list[str]) -> bool:
    rest = iter(found)
    return all(token in rest for token in wanted)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs: those of an environment that sees all that is installed here, and takes more packages.

    Its keval says that pip installed it from an index, as the tutorials are written for that.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    packages = next((home / "lib").glob("python*")) / "site-packages"
    here = sysconfig.get_paths()["purelib"]
    (packages / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    known = packages / f"keval-{version('keval')}.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(str(distribution("keval").read_text("METADATA")), encoding="utf-8")
    (known / "INSTALLER").write_text("pip\n", encoding="utf-8")
    python = home / "bin" / "python"
    uv = shutil.which("uv")
    install = f"{uv} pip install --python {python}" if uv else f"{sys.executable} -m pip --python {python} install"
    programs = {
        "keval": f'{python} -m keval "$@"',
        "pip": f'{install} --no-deps "${{@:3}}"',  # of `pip install keval-testing …`, which is here
        "pytest": f'{python} -m pytest "$@"',
    }
    for name, command in programs.items():
        (python.parent / name).write_text(f"#!/bin/bash\nexec {command}\n", encoding="utf-8")
        (python.parent / name).chmod(0o755)
    return python.parent


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_shows(page: Path, tmp_path: Path, programs: Path) -> None:
    environ = {**os.environ, "COLUMNS": "100", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    printed, ran = "", 0
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["language"] == "console":
            command = ["bash", "-euo", "pipefail", "-c", block["content"]]
            done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
            assert 0 == done.returncode, f"{block['content']}{done.stdout}{done.stderr}"
            printed, ran = done.stdout + done.stderr, ran + 1
        elif block["language"] == "text":
            assert [] == list(missing(block["content"], printed)), printed
        else:
            (name,) = _NAME.findall(block["before"])
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(block["content"], encoding="utf-8")

    assert ran
