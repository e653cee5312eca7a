"""`keval tap` as a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["tapped"]


@contextmanager
def tapped(folder: Path, server: str) -> Iterator[str]:
    """Yield the URL at which `keval tap` serves a context, whose options are given as YAML."""
    config = folder / "tap.yaml"
    config.write_text(f"contexts:\n  it: {server}\n", encoding="utf-8")
    command = [sys.executable, "-m", "keval", "tap", str(config), "--context", "it", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            assert process.wait(30) == 0
