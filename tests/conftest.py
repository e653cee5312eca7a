"""The project fixture: a folder with files, in which keval is run as a user would."""

from __future__ import annotations

import gc
import itertools
import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings

from tests.processes import command

INSTALLED = Path(__file__).parent / "installed"
ON_PATH = [str(INSTALLED)]
sys.path[:0] = ON_PATH
# Where this is set, as in many containers, each process that a test starts would compile all of its SDK anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What `uv run pytest` sets; keval would name `uv run keval` in place of `keval`.
os.environ.pop("UV_RUN_RECURSION_DEPTH", None)
AUTHORITIES = os.environ.setdefault("KEVAL_TESTS_AUTHORITIES", os.environ.get("SSL_CERT_FILE", "")) or None
"""What the machine has all programs trust, for the few tests that install packages; workers of xdist inherit it."""
# Nothing leaves loopback, where nothing is encrypted. Each client of an SDK would read all authorities, for 40 ms.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))
# How long an example takes says nothing on a machine that runs other tests meanwhile.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
# What is imported until tests begin stays, so there is nothing to collect: looking would take two seconds.
gc.disable()


MEMORY, ENOUGH = "/dev/shm", 4 * 2**30


def pytest_configure(config: pytest.Config) -> None:
    """Keep what tests write in memory: a run waits for the disk some twenty times.

    A container may have too little of it, or one in which nothing may be executed, and installations are large.
    """
    if config.option.markexpr != "installation" and os.access(MEMORY, os.W_OK):
        found = os.statvfs(MEMORY)
        if found.f_bavail * found.f_frsize >= ENOUGH and not found.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, as tests wait for processes that they start."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    gc.freeze()
    # As in keval's commands: by Python's own thresholds, a test that parses all modules takes four times as long.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


FINISHED = itertools.count(1)
PEAK = 2**20


def pytest_runtest_logfinish() -> None:
    """Keep collections from looking at what tests have imported: the kits of `keval_testing` collect twice a test."""
    if next(FINISHED) % 25 == 0:
        _thaw_what_grew()
        gc.collect()
        gc.freeze()


def _thaw_what_grew() -> None:
    """Look at everything again after each growth by half a gigabyte: what was in use then may be garbage by now."""
    global PEAK  # noqa: PLW0603
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB
    if peak > PEAK + 2**19:
        gc.unfreeze()
        PEAK = peak


def _path() -> str:
    return os.pathsep.join([*ON_PATH, os.environ.get("PYTHONPATH", "")])


@attrs.frozen
class Outcome:
    """How a command ended and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def data(self) -> Any:
        return json.loads(self.stdout)


@attrs.frozen
class Project:
    """A user's folder. `keval` runs the command in this process, `spawn` and `fork` in one of its own."""

    root: Path
    environ: dict[str, str] = attrs.field(factory=dict)

    def write(self, **files: str) -> None:
        """Write files; `weather_yaml` becomes `weather.yaml`."""
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (self.root / f"{stem}.{suffix}").write_text(dedent(text).lstrip("\n"), encoding="utf-8")

    def keval(self, *args: str, env: Mapping[str, str | None] | None = None) -> Outcome:
        from keval.cli import main

        # The path is for what keval starts, such as the gateway. Neither a terminal nor pytest-xdist sets the width.
        environ = {"PYTHONPATH": _path(), "COLUMNS": None, **self.environ, **(env or {})}
        result = CliRunner().invoke(main, args, env=environ, catch_exceptions=False)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    def run(self, config: str | Path, *args: str, env: Mapping[str, str | None] | None = None) -> Outcome:
        """Run a config of this folder or another one in this process, wherever that is; the results come here."""
        return self.keval("run", str(self.root / config), *args, "-o", str(self.root / "results"), env=env)

    def spawn(self, *args: str, env: Mapping[str, str] | None = None, timeout: float = 120) -> Outcome:
        environ = {**os.environ, "PYTHONPATH": _path(), **self.environ, **(env or {})}
        command = [sys.executable, "-m", "keval", *args]
        done = subprocess.run(
            command, cwd=self.root, env=environ, capture_output=True, text=True, timeout=timeout, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def fork(self, *args: str, env: Mapping[str, str] | None = None, timeout: float = 120) -> Outcome:
        """Run the command in a process of its own, as `spawn` does, without waiting for Python to start."""
        return Outcome(*command(self.root, {**os.environ, **self.environ, **(env or {})}, args, timeout))

    def run_directory(self) -> Path:
        """The one run under results/."""
        (found,) = [path.parent for path in self.root.glob("results/*/*/manifest.json")]
        return found

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of a file of the one run."""
        text = (self.run_directory() / name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file of the one run."""
        data: dict[str, Any] = json.loads((self.run_directory() / name).read_text(encoding="utf-8"))
        return data


def scale_of(outcome: Outcome, metric: str) -> dict[str, Any]:
    """The scale of a metric or rubric, in the summary that a command printed."""
    scale: dict[str, Any] = next(entry["scale"] for entry in outcome.data["scorers"] if entry["metric"] == metric)
    return scale


@pytest.fixture(scope="session", autouse=True)
def _user_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what keval keeps for a user, such as the viewer's secret, away from whoever runs the tests."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def serve_here(monkeypatch: pytest.MonkeyPatch, respond: Any = None) -> None:
    """Serve simulated models in this process, answered by `respond` or by the responders that their names mean."""
    from keval_gateway import wire_urls
    from keval_gateway.app import build_app
    from keval_gateway.process import RunningGateway
    from keval_gateway.responders import RespondersByName
    from keval_loopback.serving import serve

    @asynccontextmanager
    async def here(simulate: str, seed: str, *, startup: float, shutdown: float) -> AsyncIterator[RunningGateway]:
        answers = respond or RespondersByName(int(seed.removeprefix("--seed=")))
        async with serve(build_app(answers, token="a-key")) as base:
            yield RunningGateway(wire_urls(base), "a-key")

    monkeypatch.setattr("keval_gateway.run_gateway", here)


@pytest.fixture
def simulated_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve simulated models in this process, for tests that are not about the gateway: its own takes half a second."""
    serve_here(monkeypatch)
