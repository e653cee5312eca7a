"""Running a command as a child process and measuring it by the operating system's own account."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

INSTALLED = Path(__file__).parent / "installed"
_SHARE = float(os.environ.get("BENCH_SHARE", "1"))


def part(count: int, *, least: int = 1) -> int:
    """Return the part of a count that `BENCH_SHARE` asks for, so that a test runs a script for a moment."""
    return max(least, round(count * _SHARE))


@attrs.frozen
class Cost:
    """Wall and CPU time in seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak: float


def measure(command: Sequence[str], cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> Cost:
    """Run a command to its end, its output thrown away, with further variables in its environment.

    Raises CalledProcessError when it fails.
    """
    variables = {**os.environ, "PYTHONPATH": str(INSTALLED), **(environ or {})}
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, env=variables, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def keval(folder: Path, config: dict[str, Any], samples: int, environ: Mapping[str, str] | None = None) -> Cost:
    """Measure `keval run` of a config over that many questions."""
    (folder / "eval.yaml").write_text(json.dumps(config), encoding="utf-8")
    with (folder / "q.jsonl").open("w", encoding="utf-8") as file:
        for number in range(samples):
            file.write(json.dumps({"id": str(number), "question": f"Is it {number}?", "answer": "Yes, it is."}) + "\n")
    return measure([sys.executable, "-m", "keval", "run", "eval.yaml", "-q"], folder, environ)
