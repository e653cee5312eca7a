"""However keval ends, no server, gateway or agent outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Project

# What an ordered end closes is tried with the command line and with each plugin, too.
ORDERED = [pytest.param(how, marks=pytest.mark.slow) for how in (signal.SIGINT, signal.SIGTERM)]


@pytest.mark.parametrize("how", [signal.SIGKILL, *ORDERED], ids=lambda how: how.name)
def test_no_process_outlives_keval(weather: Callable[..., Project], how: signal.Signals) -> None:
    project = weather(
        ("gadk: ", "openai: "),  # the quickest to import
        ("weather: {}", "weather: {}\n  over-http: {type: weather, transport: http}"),
        ("contexts: [weather]}", "contexts: [weather]}\n  other: {contexts: [over-http]}"),
    )
    command = [sys.executable, "-m", "keval", "run", "eval.yaml", "--repetitions", "50", "-q"]
    process = subprocess.Popen(command, cwd=project.root)

    _wait(lambda: any(project.root.glob("results/*/*/trials.jsonl")), 60)
    children = _children(process.pid)
    process.send_signal(how)
    process.wait(timeout=30)

    # A gateway and two servers at least.
    assert 3 <= len(children)
    _wait(lambda: not any(_runs(child) for child in children), 30)


def _children(parent: int) -> list[int]:
    """All descendants, from /proc."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in (task / "children").read_text(encoding="ascii").split():
            found += [int(child), *_children(int(child))]
    return found


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def _wait(until: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
