"""The scripts that print the documentation's figures run; what they print is for reading, not for passing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
SCRIPTS = sorted(path for path in BENCH.glob("*.py") if path.stem != "measure")


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_its_figures(script: Path) -> None:
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=300)

    assert "wanted" in done.stdout
