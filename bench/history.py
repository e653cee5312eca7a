"""What the history of 1,000 runs costs: `keval history --json` over copies of a run, first and when two were added."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from measure import measure, part

RUNS = part(1_000)
CONFIG = Path(__file__).parents[1] / "examples" / "recorded" / "recorded.yaml"
COMMAND = [sys.executable, "-m", "keval", "history", "--limit", "10", "--json"]


def copies(run: Path, count: int, first: int = 0) -> None:
    """Copy what a history reads of a run, six hours apart."""
    for number in range(first, first + count):
        began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=6 * number)
        folder = run.with_name(f"{began:%Y%m%d-%H%M%S}-{number % 65_536:04x}")
        folder.mkdir()
        shutil.copy(run / "summary.json", folder)
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        changed = {"run": folder.name, "started": began.isoformat(), "seed": number // 10}
        (folder / "manifest.json").write_text(json.dumps({**manifest, **changed}), encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure([sys.executable, "-m", "keval", "run", str(CONFIG), "-q", "-o", "results"], folder)
        (run,) = folder.glob("results/*/*")
        copies(run, RUNS)
        first = measure(COMMAND, folder)
        copies(run, 2, RUNS)
        later = measure(COMMAND, folder)
        size = (folder / "results" / "history.sqlite").stat().st_size / 2**20
    print(f"{RUNS} runs of 14 metrics: {first.cpu:.1f} s of CPU, start-up included; wanted: seconds")
    print(f"with two runs more: {later.cpu:.1f} s, {later.cpu / first.cpu:.2f} of that; wanted: under 0.2")
    print(f"peak memory: {first.peak:.0f} MiB; the file: {size:.0f} MiB")


if __name__ == "__main__":
    main()
