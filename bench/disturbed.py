"""What refused requests cost: 2,000 trials at an endpoint that refuses 5 % of requests with 429 and 2 % with 500.

The same run goes to a gateway in a process of its own, with the faults of `double/disturb` and without, in pairs.
Figures are the ratio of wall times, start-up included, and what is left of the faults in the trials.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import attrs
from measure import keval, part

TRIALS, AT_ONCE, LATENCY, PAIRS = part(2_000), 50, 0.2, part(3)
FAULTS = {"seed": 1, "faults": [{"status": 429, "share": 0.05}, {"status": 500, "share": 0.02}]}
DOUBLES = Path(__file__).parents[1] / "tests" / "installed"
CONFIG = {
    "dataset": {"path": "q.jsonl"},
    "agents": {"openai": {"model": "openai/any"}},
    "conditions": {"baseline": {}},
    "metrics": ["basic/similarity"],
    "execution": {"max_concurrent": AT_ONCE},
}


_SERVER = """
import asyncio, sys
from keval_gateway import wire_urls
from keval_gateway.app import build_app
from keval_gateway.responders import RespondersByName
from keval_loopback.serving import serve

answer = RespondersByName(0)

async def respond(request):
    await asyncio.sleep(float(sys.argv[1]))
    return answer(request)

async def main():
    async with serve(build_app(respond)) as base:
        print(wire_urls(base)["openai-chat"], flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@attrs.frozen
class Outcome:
    """One run: its wall time, its scores by trial, and how many requests were refused and trials attempted again."""

    wall: float
    scores: Mapping[str, float]
    refusals: int
    attempts: int
    failures: int


@contextmanager
def gateway() -> Iterator[None]:
    """Run a gateway, to which the environment leads."""
    command = [sys.executable, "-c", _SERVER, str(LATENCY)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        os.environ.update(OPENAI_BASE_URL=process.stdout.readline().strip(), OPENAI_API_KEY="bench")
        try:
            yield
        finally:
            process.communicate()


def run(**changes: Any) -> Outcome:
    """Run the trials at the gateway that the environment leads to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wall = keval(folder, {**CONFIG, **changes}, TRIALS, {"PYTHONPATH": str(DOUBLES)}).wall
        (found,) = folder.glob("results/*/*/trials.jsonl")
        trials = [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]
        lines = found.with_name("scores.jsonl").read_text(encoding="utf-8").splitlines()
    return Outcome(
        wall,
        {score["trial"]: score["value"] for score in map(json.loads, lines)},
        sum(len(trial["transcript"]["refusals"]) for trial in trials),
        sum(len(trial["attempts"]) for trial in trials),
        sum(trial["failure"] is not None for trial in trials),
    )


def pair() -> float:
    """Measure one run of each kind, and return how many times as long the disturbed one took."""
    with gateway():
        plain, disturbed = run(), run(middleware=[{"double/disturb": FAULTS}])
    print(f"{plain.wall:.1f} s undisturbed, {disturbed.wall:.1f} s disturbed: {disturbed.wall / plain.wall:.2f} times;")
    print(f"  {disturbed.refusals:,} refusals in transcripts; {disturbed.attempts} attempts repeated,")
    changed = sum(plain.scores[trial] != score for trial, score in disturbed.scores.items())
    lost = TRIALS - len(disturbed.scores) + disturbed.failures
    print(f"  {lost} trials lost, {changed} scored otherwise; wanted: none")
    return disturbed.wall / plain.wall


def main() -> None:
    ratios = [pair() for _ in range(PAIRS)]
    print(
        f"{TRIALS:,} trials, {AT_ONCE} at once, {LATENCY * 1000:g} ms: {median(ratios):.2f} times; wanted: at most 1.3"
    )


if __name__ == "__main__":
    main()
