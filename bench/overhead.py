"""What keval itself costs per trial: an agent that answers at once, one trivial metric, every trial durable."""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import Cost, keval, part

QUESTIONS = part(200)
SMALL, LARGE = 10 * QUESTIONS, 100 * QUESTIONS


def run(trials: int) -> Cost:
    """Run that many trials: the same questions, repeated."""
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"bench": {"type": "bench/instant"}},
        "conditions": {"baseline": {}},
        "metrics": ["bench/one"],
        "execution": {"num_repetitions": trials // QUESTIONS, "max_concurrent": 64},
    }
    with tempfile.TemporaryDirectory() as folder:
        return keval(Path(folder), config, QUESTIONS)


def main() -> None:
    small, large = run(SMALL), run(LARGE)
    marginal = (large.cpu - small.cpu) / (LARGE - SMALL)
    print(f"CPU per trial, start-up included: {small.cpu / SMALL * 1000:.2f} ms over {SMALL} trials,")
    print(f"  {large.cpu / LARGE * 1000:.2f} ms over {LARGE}; wanted: at most 0.5")
    print(f"  each further trial: {marginal * 1000:.2f} ms")
    growth = large.peak / small.peak
    print(f"peak memory: {small.peak:.0f} MiB at {SMALL} trials, {large.peak:.0f} MiB at {LARGE}: {growth:.2f} times;")
    print("  wanted: at most 1.15 (the same questions repeated)")


if __name__ == "__main__":
    main()
