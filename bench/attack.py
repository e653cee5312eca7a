"""Attack a checkout of keval: the kinds of attacks in `tests/attacks`, with how many were tried and how many it held.

    python bench/attack.py             this checkout
    python bench/attack.py ../older    another one, whose environment has the group `dev` (`uv sync --group dev`)

Prints a line for each kind; with `--show`, each attack that was not held, too. An attack is not held where the test
fails, also because the checkout lacks what the attack is for. Attacks that need what this machine lacks, such as
bubblewrap or a browser, are not tried. Exits with 1 if any was not held.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
ATTACKS = ROOT / "tests" / "attacks"


def kinds() -> dict[str, str]:
    """Return what each module attacks, by its name: the first sentence of its docstring."""
    found = {}
    for path in sorted(ATTACKS.glob("test_*.py")):
        told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.stem] = " ".join(told.partition(".")[0].split())
    return found


def attacked(python: Path, report: Path) -> list[tuple[str, str, str]]:
    """Run all attacks by this Python's keval; returns module, test and `held`, `not held` or `not tried` of each."""
    arguments = ("-q", "-n", "2", "-m", "slow or not slow", "-p", "no:cacheprovider", f"--junitxml={report}")
    command = [str(python), "-m", "pytest", *arguments, str(ATTACKS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"the attacks did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        inside = {child.tag for child in case}
        state = "not tried" if "skipped" in inside else "not held" if inside & {"failure", "error"} else "held"
        module = next(part for part in reversed(case.get("classname", "").split(".")) if part.startswith("test_"))
        found.append((module, case.get("name", ""), state))
    return found


def main(checkout: Path, *, show: bool) -> int:
    """Attack a checkout and print how it held; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        found = attacked(checkout.absolute() / ".venv" / "bin" / "python", Path(folder, "report.xml"))
    tried = Counter(module for module, _, state in found if state != "not tried")
    held = Counter(module for module, _, state in found if state == "held")
    print("wanted: all that are tried are held\n\ntried  held")
    for module, told in kinds().items():
        print(f"{tried[module]:5} {held[module]:5}  {told}")
    print(f"{tried.total():5} {held.total():5}  in all; {len(found) - tried.total()} were not tried")
    if show:
        print(*(f"not held: {module}::{test}" for module, test, state in found if state == "not held"), sep="\n")
    return int(held.total() < tried.total())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT, help="another checkout of keval")
    parser.add_argument("--show", action="store_true", help="print what was not held")
    told = parser.parse_args()
    sys.exit(main(told.checkout, show=told.show))
