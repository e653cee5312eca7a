"""`--view` begins a viewer beside a run, which keeps its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import httpx
import pytest

from keval.seams import registry
from tests.conftest import ON_PATH, Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {patient: {type: double/patient, path: .}}
metrics: [double/length]
execution: {retry: {max_attempts: 1}}
"""


@pytest.fixture
def patient(project: Project) -> Project:
    """A run that waits for `begin`, and then fails: it may not try again."""
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "What is it?"}\n')
    return project


@contextmanager
def viewed(project: Project, stdin: int | IO[bytes]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Begin a run with `--view`, and yield its process and the viewer's address."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH), "BROWSER": "true"}
    command = [sys.executable, "-m", "keval", "run", "eval.yaml", "--view", "-q"]
    with subprocess.Popen(
        command, cwd=project.root, env=environ, stdin=stdin, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            yield process, next(line.strip() for line in process.stderr if line.startswith("http://"))
            process.wait(30)
        finally:
            process.kill()


def shown(url: str) -> str:
    """Open an address as a browser does, and return the page."""
    with httpx.Client(follow_redirects=True) as browser:
        return browser.get(url).raise_for_status().text


def test_without_a_viewer_nothing_is_run(patient: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = registry.components
    monkeypatch.setattr(registry, "components", lambda group: [] if group == "keval.options" else installed(group))
    monkeypatch.delitem(sys.modules, "keval.cli.run_command", raising=False)

    outcome = patient.keval("run", "eval.yaml", "--view")

    assert 2 == outcome.code
    assert "The option '--view' comes with keval-viewer, which is not installed: `" in outcome.stderr
    assert not (patient.root / "results").exists()


@pytest.mark.slow  # it starts two processes, and each imports all of keval
def test_a_run_without_a_terminal_is_shown_until_its_end(patient: Project) -> None:
    with viewed(patient, subprocess.DEVNULL) as (process, url):
        page = shown(url)
        (patient.root / "begin").touch()

    assert patient.run_directory().name in page
    assert 3 == process.returncode
    with pytest.raises(httpx.ConnectError):
        shown(url)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_in_a_terminal_the_viewer_goes_on_until_ctrl_c(patient: Project) -> None:
    (patient.root / "begin").touch()
    terminal, stdin = os.openpty()
    with viewed(patient, stdin) as (process, url):
        assert process.stderr is not None
        told = next(line for line in process.stderr if "still running" in line)
        page = shown(url)
        process.send_signal(signal.SIGINT)
    os.close(terminal)
    os.close(stdin)

    assert (f"the viewer is still running; press Ctrl-C to stop it: {url}\n", 3) == (told, process.returncode)
    assert patient.run_directory().name in page
    with pytest.raises(httpx.ConnectError):
        shown(url)
