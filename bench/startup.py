"""What starting costs: `keval --help` and `keval --version` against `python -c pass`, as ratios within one run."""

from __future__ import annotations

import compileall
import shutil
import statistics
import sys
from pathlib import Path

from measure import measure

import keval

ROUNDS = 15
LIMIT = 10.0


def main() -> None:
    compileall.compile_dir(Path(keval.__file__).parent, quiet=1)
    command = shutil.which("keval", path=str(Path(sys.executable).parent)) or "keval"
    commands = {"keval --help": [command, "--help"], "keval --version": [command, "--version"]}
    ratios: dict[str, list[float]] = {name: [] for name in commands}
    bare: list[float] = []
    for _ in range(ROUNDS):
        bare.append(measure([sys.executable, "-c", "pass"]).wall)
        for name, arguments in commands.items():
            ratios[name].append(measure(arguments).wall / bare[-1])
    print(f"python -c pass: {statistics.median(bare) * 1000:.0f} ms (median of {ROUNDS})")
    for name, found in ratios.items():
        low, middle, high = min(found), statistics.median(found), max(found)
        print(f"{name}: {middle:.1f} times python -c pass (median; {low:.1f} to {high:.1f}); wanted: at most {LIMIT:g}")


if __name__ == "__main__":
    main()
