"""Machines that share results at a URL: each is a cache of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.conftest import ON_PATH, Outcome, Project

CONFIG = """
name: shared
dataset: {path: questions.jsonl}
agents: {scripted: {}}
metrics: [double/length]
execution: {max_concurrent: 1, timeout_seconds: 20, retry: {max_attempts: 1}}
"""


def questions(count: int, **last: Any) -> str:
    """So many questions, the last one with a script."""
    lines: list[dict[str, Any]] = [{"id": f"q{n}", "question": f"How, {n}?", "answer": "So."} for n in range(count)]
    lines[-1] |= last
    return "".join(json.dumps(line) + "\n" for line in lines)


def eventually(found: Callable[[], Any]) -> Any:
    """Wait until something is found, and return it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if seen := found():
            return seen
        time.sleep(0.02)
    raise AssertionError("it did not come within 60 s")


@attrs.frozen
class Machine:
    """One machine: commands with a cache of its own, and short times."""

    project: Project
    url: str
    cache: Path
    env: dict[str, str] = attrs.field(factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        times = {"KEVAL_REMOTE_PART_SECONDS": "0.05", "KEVAL_REMOTE_LEASE_SECONDS": "1.5"}
        return {"KEVAL_CACHE": str(self.cache), **times, **self.env}

    def but(self, **env: str) -> Machine:
        """The same machine with another environment."""
        return attrs.evolve(self, env=env)

    def keval(self, *args: str) -> Outcome:
        """Run a command in this process, with the results at the URL."""
        return self.project.keval(*args, "-o", self.url, env=self.environ)

    def bare(self, *args: str) -> Outcome:
        """Run a command as it is."""
        return self.project.keval(*args, env=self.environ)

    def fork(self, *args: str, **env: str) -> Outcome:
        """Run a command in a process of its own, with the results at the URL."""
        return self.project.fork(*args, "-o", self.url, env={**self.environ, **env})

    def begin(self, *args: str) -> subprocess.Popen[str]:
        """Begin a command in a process of its own, with the results at the URL."""
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH), **self.environ}
        command = [sys.executable, "-m", "keval", *args, "-o", self.url]
        return subprocess.Popen(
            command, cwd=self.project.root, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self) -> Path:
        """The one run in the cache."""
        (found,) = self.cache.glob("*/*/*/manifest.json")
        return found.parent

    def files(self) -> set[str]:
        """The files of the one run in the cache, without those that only tell of the copy."""
        run = self.run()
        names = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
        return {name for name in names if not name.startswith(".")}


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """Where the results lie."""
    return tmp_path / "bucket"


@pytest.fixture
def machine(project: Project, bucket: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Machine]:
    monkeypatch.setattr("keval_remote.remote._FRESH", 0.0)
    project.write(eval_yaml=CONFIG, questions_jsonl=questions(3))
    return lambda name: Machine(project, f"file://{bucket}/results", project.root / name)
