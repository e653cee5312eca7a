"""The scripts that print the documentation's figures run; what they print is for reading, not for passing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import own_agents
import pytest
import yaml

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
PARTS = (
    "against_peers",
    "attack",
    "breaks",
    "fixed_model",
    "held_back_servers",
    "ledger",
    "look_up_server",
    "make_places",
    "measure",
    "own_agents",
    "real_servers",
    "simulated_hands",
    "tally",
)
"""What prints no figures by itself, takes hours, installs packages, or has a test of its own."""
SCRIPTS = sorted(path for path in BENCH.glob("*.py") if path.stem not in PARTS)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_its_figures(script: Path) -> None:
    if script.stem == "ray_executor":
        pytest.importorskip("ray", reason="Ray is installed apart")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "BENCH_SHARE": "0.01"},
        stdout=subprocess.PIPE,  # a traceback goes to the test's own output
        text=True,
        check=True,
        timeout=300,
    )

    assert "wanted" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("subject", own_agents.NAMES)
def test_what_a_trial_of_an_agent_costs_is_printed(subject: str) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "own_agents.py"), "--json", subject],
        env={**os.environ, "BENCH_SHARE": "0.01"},
        stdout=subprocess.PIPE,  # a traceback goes to the test's own output
        text=True,
        check=True,
        timeout=300,
    )

    (result,) = json.loads(done.stdout)
    assert (subject, True) == (result["subject"], result["peak_mib"] > 0)


def test_every_deliberate_defect_can_still_be_made() -> None:
    """Running them takes hours; that the places exist is known at once."""
    breaks = yaml.safe_load((BENCH / "breaks.yaml").read_text(encoding="utf-8"))

    wrong = [
        one["name"]
        for one in breaks
        if (ROOT / one["file"]).read_text(encoding="utf-8").count(one["old"]) != 1
        or not all((ROOT / tests).exists() for tests in one["tests"])
    ]
    assert (len(breaks) > 100, wrong) == (True, [])
