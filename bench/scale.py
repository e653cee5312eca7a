"""What a large run takes of the machine that drives it, beside a small one: memory, CPU and the viewer's first pages.

Two agents that answer at once are asked under two conditions, with one metric that scatters. The run of each size has
one of two shapes: many questions asked once, or 50 questions asked many times. Every command is a child process.

`--million` tries 1,000,000 trials, once, and `--sizes` any other sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

from measure import INSTALLED, Cost, measure, part
from viewing import Viewer

ARMS, FEW = 4, 50
SIZES = (part(10_000, least=400), part(200_000, least=800))
GROWTH = 1.3
KEVAL = (sys.executable, "-m", "keval")
FIRST = "one/plain/0/1"


def prepare(folder: Path, trials: int, *, repeated: bool) -> None:
    """Write an evaluation of that many trials: of 50 questions that are repeated, or of many that are not."""
    questions = FEW if repeated else trials // ARMS
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {name: {"type": "bench/instant"} for name in ("one", "two")},
        "conditions": {"plain": {}, "other": {"system_prompt": "Answer."}},
        "metrics": ["bench/scattered"],
        "execution": {"num_repetitions": trials // ARMS // questions, "max_concurrent": 64},
    }
    (folder / "eval.yaml").write_text(json.dumps(config), encoding="utf-8")
    with (folder / "q.jsonl").open("w", encoding="utf-8") as file:
        for number in range(questions):
            file.write(json.dumps({"id": str(number), "question": f"Is it {number}?", "answer": "Yes, it is."}) + "\n")


def costs(folder: Path) -> Iterator[tuple[str, Cost]]:
    """Yield each command with what it costs, in the order in which they need each other's results."""

    def keval(*words: str) -> Cost:
        return measure([*KEVAL, *words], folder)

    yield "validate", keval("validate", "eval.yaml")
    yield "run", keval("run", "eval.yaml", "-q")
    (whole,) = (folder / "results").glob("*/*")
    yield "score", keval("score", whole.name)
    yield "report", keval("report", whole.name, "--json")
    yield "report --html", keval("report", whole.name, "--html", "page.html")
    yield "compare", keval("compare", whole.name, "--json")
    yield "export csv", keval("export", whole.name, "--format", "csv")
    yield "export junit", keval("export", whole.name, "--format", "junit")
    begin_and_kill(folder, (whole / "trials.jsonl").stat().st_size // 2)
    (half,) = {*(folder / "results").glob("*/*")} - {whole}
    yield "resume", keval("resume", half.name, "-q")
    yield "compare two", keval("compare", half.name, whole.name, "--json")


def begin_and_kill(folder: Path, size: int) -> None:
    """Begin a run, and kill it when its trials.jsonl has so many bytes."""
    known = {*(folder / "results").glob("*/*")}
    environ = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    with subprocess.Popen([*KEVAL, "run", "eval.yaml", "-q"], cwd=folder, env=environ) as process:
        while process.poll() is None:
            begun = {*(folder / "results").glob("*/*")} - known
            if any((run / "trials.jsonl").exists() and (run / "trials.jsonl").stat().st_size > size for run in begun):
                process.send_signal(signal.SIGKILL)
                return
            time.sleep(0.01)
    raise RuntimeError("the run ended before it could be killed")


def first_pages(folder: Path) -> Iterator[tuple[str, float]]:
    """Yield the CPU time that a viewer which has just started takes for a page of a trial, and for one of a sample."""
    run = sorted((folder / "results").glob("*/*"))[0]
    for name, page in (("trial", f"trials/{quote(FIRST, safe='')}"), ("sample", "samples/0")):
        with Viewer.serve(folder / "results") as viewer:
            browser = HTTPConnection("127.0.0.1", viewer.port)
            before = viewer.cpu
            browser.request("GET", f"/runs/{run.parent.name}/{run.name}/{page}", headers={"Cookie": viewer.cookie})
            answer = browser.getresponse()
            answer.read()
            yield name, viewer.cpu - before
            browser.close()
            if answer.status != 200:
                raise RuntimeError(f"the page of a {name} has the status {answer.status}")


def measured(trials: int, *, repeated: bool) -> tuple[Mapping[str, Cost], Mapping[str, float]]:
    """Return what commands cost on a run of that many trials, and the CPU time of the first pages."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:  # a disk; /tmp may be none
        folder = Path(name)
        prepare(folder, trials, repeated=repeated)
        found = {}
        for command, cost in costs(folder):
            found[command] = cost
            print(
                f"  {trials:>9,} {command:<14}{cost.peak:7.0f} MiB{cost.cpu:9.1f} s CPU{cost.wall:9.1f} s", flush=True
            )
        pages = dict(first_pages(folder))
        told = ", ".join(f"{page} {1000 * seconds:.0f} ms CPU" for page, seconds in pages.items())
        print(f"  {trials:>9,} first pages: {told}", flush=True)
        return found, pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="try 1,000,000 trials, once")
    parser.add_argument("--sizes", type=int, nargs=2, default=SIZES, metavar=("SMALL", "LARGE"))
    parser.add_argument("--shape", choices=("many", "repeated"), help="only many questions, or only repeated ones")
    given = parser.parse_args()
    small, large = given.sizes
    large = 1_000_000 if given.million else large
    for shape in ("many", "repeated"):
        if given.shape not in (None, shape):
            continue
        print(f"{'many questions' if shape == 'many' else f'{FEW} questions, repeated'}:")
        (few, quick), (all_of_it, slow) = (measured(size, repeated=shape == "repeated") for size in (small, large))
        for command, cost in all_of_it.items():
            growth, per_trial = cost.peak / few[command].peak, (cost.cpu - few[command].cpu) / (large - small)
            print(f"  {command:<14} memory x{growth:.2f}, {1000 * per_trial:.3f} ms of CPU for each further trial")
        for page, seconds in slow.items():
            print(f"  first page of a {page} {1000 * (seconds - quick[page]):+.0f} ms of CPU")
    print(f"wanted: memory at most x{GROWTH} at {large:,} trials against {small:,}, and pages that are there at once")


if __name__ == "__main__":
    main()
