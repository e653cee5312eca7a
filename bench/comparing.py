"""What comparing two runs costs: `keval compare RUN RUN --json` over runs of 10,000 trials each, four metrics."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import Cost, measure, part

SMALL, LARGE = part(1_000), part(10_000)
AGENTS, CONDITIONS = ("one", "two"), ("baseline", "with_docs")
METRICS = ["basic/contains", "basic/similarity", "basic/turns", "basic/latency"]


def compare(trials: int) -> Cost:
    """Make two runs of recorded answers with that many trials each, and compare them."""
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), random.Random(3)
        samples = trials // len(AGENTS) // len(CONDITIONS)
        questions = [{"id": f"q{n}", "question": f"Is it {n}?", "answer": "Yes, it is."} for n in range(samples)]
        _write(folder / "q.jsonl", questions)
        for run in "ab":
            for agent in AGENTS:
                _write(
                    folder / f"{agent}-{run}.jsonl", [_answer(rng, n, c) for n in range(samples) for c in CONDITIONS]
                )
            config = {
                "name": run,
                "dataset": {"path": "q.jsonl"},
                "agents": {agent: {"type": "recorded", "path": f"{agent}-{run}.jsonl"} for agent in AGENTS},
                "conditions": {condition: {} for condition in CONDITIONS},
                "metrics": METRICS,
            }
            (folder / f"{run}.yaml").write_text(json.dumps(config), encoding="utf-8")
            measure([sys.executable, "-m", "keval", "run", f"{run}.yaml", "-q"], folder)
        runs = sorted(str(path) for path in folder.glob("results/*/*"))
        return measure([sys.executable, "-m", "keval", "compare", *runs, "--json"], folder)


def _answer(rng: random.Random, number: int, condition: str) -> dict[str, object]:
    good = rng.random() < (0.6 if condition == "baseline" else 0.8)
    return {
        "id": f"q{number}",
        "condition": condition,
        "response": "Yes, it is so, of course." if good else "No, I do not think so.",
        "response_time": rng.uniform(0.5, 9),
        "tool_calls": [{"name": "look", "arguments": {"number": number}, "result": "yes"}],
        "usage": {"input_tokens": 400, "output_tokens": 50},
    }


def _write(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def main() -> None:
    small, large = compare(SMALL), compare(LARGE)
    print(f"comparing two runs of {LARGE} trials each: {large.wall:.2f} s, start-up included; wanted: under 3 s")
    print(f"peak memory: {small.peak:.0f} MiB at {SMALL} trials, {large.peak:.0f} MiB at {LARGE}:", end=" ")
    print(f"{large.peak / small.peak:.2f} times; wanted: flat")


if __name__ == "__main__":
    main()
