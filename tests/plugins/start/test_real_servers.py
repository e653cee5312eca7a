"""From nothing to a report with MCP servers of others: an empty folder, a fresh environment, packages as built.

The servers come from PyPI and npm; where these cannot be reached, the tests are skipped. Each writes how many
commands were typed and how many seconds they took.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
MEMBERS = (
    *(".", "agents/openai", "judges/llm", "metrics/basic"),
    *(f"plugins/{name}" for name in ("clients", "gateway", "loopback", "mcp", "providers", "simulator", "start")),
)


@attrs.define
class Newcomer:
    """Somebody in an empty folder, with an environment that has keval and the servers of PyPI."""

    folder: Path
    environment: Path
    commands: int = 0
    seconds: float = 0.0

    def type(self, *words: str) -> str:
        """Run a command, which must end with 0, and return what it prints."""
        kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
        environ = {**kept, "PATH": os.pathsep.join([str(self.environment / "bin"), kept["PATH"]])}
        begun = time.monotonic()
        done = subprocess.run(words, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=300)
        self.commands += 1
        self.seconds += time.monotonic() - begun
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if (uv := shutil.which("uv")) is None:
        pytest.skip("uv, which makes the environment, is not on the path")
    home = tmp_path_factory.mktemp("newcomer") / "venv"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(home)], check=True)
    install = [uv, "pip", "install", "-q", "--python", str(home), "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*install, *(str(ROOT / member) for member in MEMBERS)], check=True)
    servers = [uv, "pip", "install", "-q", "--python", str(home), "mcp-server-time", "mcp-server-git"]
    done = subprocess.run(servers, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"the servers cannot be had from PyPI: {done.stderr.strip()[-300:]}")
    return home


@pytest.fixture
def newcomer(environment: Path, tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path, environment)


def evaluated(newcomer: Newcomer, server: str, label: str, tool: str) -> None:
    """Go from a server to a report by the commands that are named."""
    written = newcomer.type("keval", "init", "--server", server)
    assert f"{label} has " in written
    assert tool in written
    (command,) = (line.removeprefix("next  ") for line in written.splitlines() if line.startswith("next  "))

    report = newcomer.type(*command.split())

    assert "SIMULATED MODEL" in report
    assert "6 trials, none failed" in report
    assert f"with_{label} against baseline" in report
    sys.stdout.write(f"{server}: {newcomer.commands} commands, {newcomer.seconds:.1f} s from init to a report\n")


def test_the_time_server_of_pypi(newcomer: Newcomer) -> None:
    evaluated(newcomer, "mcp-server-time", "time", "get_current_time")


def test_the_git_server_of_pypi(newcomer: Newcomer) -> None:
    subprocess.run(["git", "init", "-q", str(newcomer.folder)], check=True)

    evaluated(newcomer, "mcp-server-git --repository .", "git", "git_status")

    config = yaml.safe_load((newcomer.folder / "eval.yaml").read_text(encoding="utf-8"))
    assert "." == config["contexts"]["git"]["cwd"]


def test_the_filesystem_server_of_npm(newcomer: Newcomer) -> None:
    if shutil.which("npx") is None:
        pytest.skip("npx is not on the path")
    package = "@modelcontextprotocol/server-filesystem"
    done = subprocess.run(["npm", "view", package, "version"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"npm's registry cannot be reached: {done.stderr.strip()[-300:]}")

    evaluated(newcomer, f"npx -y {package} .", "filesystem", "read_text_file")
