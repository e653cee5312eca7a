"""Somebody who installs keval: an empty folder, the commands of a shell, and nothing of this repository on any path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from filelock import FileLock

from tests.conftest import AUTHORITIES

ROOT = Path(__file__).parents[2]
_OF_TESTS = ("PYTHONPATH", "SSL_CERT_FILE", "UV", "VIRTUAL_ENV", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
"""Variables that `uv run pytest` and the tests set for themselves."""


@attrs.define
class Newcomer:
    """A shell in an empty folder. `keval` is how the command is typed; `bin` comes first on the path.

    `links` is a folder of wheels, which the installers find beside their index."""

    folder: Path
    uv: str
    keval: str = "keval"
    bin: Path | None = None
    links: Path | None = None
    seconds: dict[str, float] = attrs.field(factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The environment, with how packages are found here, and with tools of uv in the folder."""
        kept = {name: value for name, value in os.environ.items() if name not in _OF_TESTS}
        if AUTHORITIES is not None:
            kept["SSL_CERT_FILE"] = AUTHORITIES
        places = [*([str(self.bin)] if self.bin else []), str(self.tools), str(Path(sys.base_prefix, "bin"))]
        tools = {"UV_TOOL_DIR": str(self.folder / ".tools"), "UV_TOOL_BIN_DIR": str(self.tools)}
        path = os.pathsep.join([*places, str(Path(self.uv).parent), "/usr/bin", "/bin"])
        links = {"PIP_FIND_LINKS": str(self.links), "UV_FIND_LINKS": str(self.links)} if self.links else {}
        return {
            **kept,
            **tools,
            **links,
            "PATH": path,
            "UV_CONSTRAINT": str(ROOT / "constraints.txt"),
            "COLUMNS": "100",
        }

    @property
    def tools(self) -> Path:
        """Where uv puts the programs of its tools."""
        return self.folder / ".bin"

    def type(self, command: str, *, typed: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command as bash does, which must end with this code; `typed` is its standard input."""
        begun = time.monotonic()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environ,
            input=typed,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        self.seconds[command] = time.monotonic() - begun
        assert code == done.returncode, f"$ {command}\n{done.stdout}{done.stderr}"
        return done


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    uv = shutil.which("uv")
    assert uv is not None, "uv is not on the path: pip install uv"
    found = Newcomer(tmp_path, uv)
    yield found
    for command, seconds in sorted(found.seconds.items(), key=lambda each: -each[1])[:8]:
        sys.stdout.write(f"{seconds:6.1f} s  {command.splitlines()[0][:100]}\n")


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of keval that has what this one has, also what is not committed.

    It is a folder of its own, as uv builds a folder anew only if its pyproject.toml changes.
    """
    own = tmp_path_factory.getbasetemp()
    # Above that of a worker is that of all workers, and above that of a run alone is that of earlier runs.
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "clone" / "keval"
    with FileLock(shared / "clone.lock"):
        if not folder.exists():
            listed = _git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
            for name in filter(None, listed):
                if (ROOT / name).is_file():
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, folder / name)
            _git(folder, "init", "-q", "-b", "main")
            _git(folder, "add", ".")
            _git(folder, "-c", "user.name=keval", "-c", "user.email=keval@example.org", "commit", "-q", "-m", "All")
    return folder


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of every package; CI has one already."""
    if built := os.environ.get("KEVAL_WHEELS"):
        return Path(built)
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run(["uv", "build", "-q", "--all-packages", "--wheel", "-o", str(folder)], cwd=ROOT, check=True)
    return folder
