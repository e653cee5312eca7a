"""How many faults, kills, power cuts and broken inputs were survived, by the tests that hold the promises.

`docs/reliability.md` has the promises. Each test records what it did; this adds it up. Without `--all` only the
quick ones run, in about a minute; with it, all of them, in about ten.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from measure import part

ROOT = Path(__file__).parents[1]
LONGEST = 1_800
"""Seconds after which the tests are given up."""

PROMISES = {
    "what is done survives a power cut": ["tests/core/store/test_power_loss.py", "tests/core/store/test_journal.py"],
    "a run goes on": ["tests/end_to_end/test_resume.py", "tests/core/run/test_resume.py"],
    "one trial's failure is that trial's": ["tests/core/store/test_integrity.py", "tests/core/execute/test_limits.py"],
    "models that fail": ["tests/end_to_end/test_refused_requests.py", "tests/end_to_end/test_model_faults.py"],
    "servers that fail": ["tests/end_to_end/test_mcp_faults.py"],
    "nothing outlives keval": ["tests/end_to_end/test_leaving_nothing.py"],
    "bounds": ["tests/end_to_end/test_limits.py", "tests/core/config/test_bounds.py"],
    "secrets": ["tests/end_to_end/test_canaries.py", "tests/core/run/test_secrets.py"],
    "hostile input": ["tests/core/test_hostile_input.py"],
    "local only": ["tests/end_to_end/test_local_only.py"],
}


def main() -> None:
    promises = dict(list(PROMISES.items())[-part(len(PROMISES)) :])
    files = [file for held in promises.values() for file in held]
    chosen = ["-m", "slow or not slow"] if "--all" in sys.argv else []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", *chosen, f"--junitxml={report}", *files]
        subprocess.run(command, cwd=ROOT, check=False, timeout=LONGEST, stdout=subprocess.DEVNULL)
        cases = [*ElementTree.parse(report).iter("testcase")]
    for promise, held in promises.items():
        modules = {file.removesuffix(".py").replace("/", ".") for file in held}
        own = [case for case in cases if case.get("classname") in modules]
        failed = [
            case.get("name") for case in own if case.find("failure") is not None or case.find("error") is not None
        ]
        recorded = Counter[str]()
        for found in (entry for case in own for entry in case.iter("property")):
            recorded[found.get("name", "")] += int(found.get("value", "0"))
        told = ", ".join(f"{count:,} {what}" for what, count in recorded.items())
        print(f"{promise:36}{len(own) - len(failed):4} of {len(own):3} tests passed{f': {told}' if told else ''}")
        for name in failed:
            print(f"    FAILED {name}")
    print("wanted: all, with no trial lost and no input that ends in a traceback, a hang or a crash")


if __name__ == "__main__":
    main()
