"""What it costs that a trial which is done survives a power cut: runs with and without syncing, in pairs."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from latency import model
from measure import keval, part

PAIRS, TRIALS, LATENCY, AT_ONCE = part(5), part(2_000), 0.05, 50


def pair(config: dict[str, Any]) -> tuple[float, float]:
    """Return wall and CPU time with syncing, over those without."""
    costs = []
    for plugins in ([], ["bench/unsynced"]):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # a disk; /tmp may be none
            costs.append(keval(Path(folder), {**config, "plugins": plugins}, TRIALS))
    return costs[0].wall / costs[1].wall, costs[0].cpu / costs[1].cpu


def main() -> None:
    with model(LATENCY) as port:
        for name, agent in (("instant", {"type": "bench/instant"}), ("http", {"type": "bench/http", "port": port})):
            config = {
                "dataset": {"path": "q.jsonl"},
                "agents": {"bench": agent},
                "conditions": {"baseline": {}},
                "metrics": ["bench/one"],
                "execution": {"max_concurrent": AT_ONCE},
            }
            pairs = [pair(config) for _ in range(PAIRS)]
            wall, cpu = (statistics.median(ratios) for ratios in zip(*pairs, strict=True))
            print(f"{TRIALS} trials, agent {name}: wall time x{wall:.3f}, CPU x{cpu:.3f} with syncing")
    print(f"agent http answers after {LATENCY * 1000:.0f} ms, {AT_ONCE} at once; wanted for it: at most x1.05")


if __name__ == "__main__":
    main()
