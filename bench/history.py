"""What the history of 1,000 runs costs: `keval history --json` over copies of a run."""

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


def copies(run: Path, count: int) -> None:
    """Copy what a history reads of a run, six hours apart."""
    for number in range(count):
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
        found = measure(COMMAND, folder)
    print(f"{RUNS} runs of 14 metrics: {found.cpu:.1f} s of CPU, start-up included; wanted: seconds")
    print(f"peak memory: {found.peak:.0f} MiB")


if __name__ == "__main__":
    main()
