"""What it costs a run that people look at it: keval's own CPU with 0, 1 and 20 viewers, in turns.

`keval view` is a process of its own, and so are its readers, which hold the event streams of the run's page open as
browsers do. All runs of a load are made by this process, so that what it imports is the same for all; only its own CPU
counts, from the first trial to the last score. The load `busy` is an agent that asks a model twice and the weather
server once for each trial, none of which waits. `waiting` has 100 trials in flight that wait for a slow model.

How many functions Python calls does not depend on what else the machine does, so that is counted, too. And a run that
nobody looks at is measured beside a bystander: a process that uses as much CPU as the viewers and readers did, and has
nothing to do with the run. What it costs the run is what it costs to share the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from http.client import HTTPConnection
from pathlib import Path
from pstats import Stats
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import attrs
from measure import part

from keval.plugin import hookimpl

ROUNDS, VIEWERS = part(3), (1, 20)
LOADS = {"busy": part(200), "waiting": part(1_000)}
"""How many trials each load has."""
LATENCY, AT_ONCE = 0.5, {"busy": 8, "waiting": 100}

_READERS = """
import asyncio, sys, time
port, path, cookie, count = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
async def read():
    reader, writer = await asyncio.open_connection('127.0.0.1', port, limit=1 << 24)
    head = [f'GET {path} HTTP/1.1', f'Host: 127.0.0.1:{port}', f'Cookie: {cookie}', 'Accept: text/event-stream']
    writer.write('\\r\\n'.join([*head, '', '']).encode())
    events = 0
    while line := await reader.readline():
        events += line.startswith(b'event: part')
        if line.startswith(b'event: ended'):
            break
    return events
async def main():
    print(min(await asyncio.gather(*(read() for _ in range(count)))), time.process_time())
asyncio.run(main())
"""
_BYSTANDER = """
import json, sys, time
share, text = float(sys.argv[1]), json.dumps([{'number': n, 'text': str(n)} for n in range(1000)])
while True:
    until = time.perf_counter() + 0.1
    busy = time.process_time() + 0.1 * share
    while time.process_time() < busy:
        json.loads(text)
    time.sleep(max(0, until - time.perf_counter()))
"""


@attrs.define
class Viewer:
    """A viewer of a results folder, and how a browser gets in."""

    port: int
    cookie: str
    pid: int

    @property
    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @classmethod
    @contextmanager
    def serve(cls, results: Path) -> Iterator[Viewer]:
        command = [sys.executable, "-m", "keval", "view", str(results), "--no-browser", "--port=0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = urlsplit(process.stdout.readline().strip())
            browser = HTTPConnection("127.0.0.1", url.port or 0)
            browser.request("GET", f"{url.path}?{url.query}")
            cookie = (browser.getresponse().getheader("Set-Cookie") or "").partition(";")[0]
            browser.close()
            try:
                yield cls(url.port or 0, cookie, process.pid)
            finally:
                process.terminate()


@attrs.define
class Readers:
    """Opens the event stream of a run once for each viewer, when the run begins; each got at least `events`.

    `cpu` is what they took together, in seconds.
    """

    viewer: Viewer
    count: int
    events: int | None = None
    cpu: float = 0.0
    _process: subprocess.Popen[str] | None = None

    @hookimpl
    def keval_run_started(self, directory: Path) -> None:
        if self.count:
            path = f"/runs/{directory.parent.name}/{directory.name}/events?running"
            options = [str(self.viewer.port), path, self.viewer.cookie, str(self.count)]
            command = [sys.executable, "-c", _READERS, *options]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def end(self) -> None:
        """Wait for the end of the streams."""
        if self._process is not None:
            events, cpu = self._process.communicate(timeout=60)[0].split()
            self.events, self.cpu = int(events), float(cpu)


@attrs.frozen
class Measured:
    """A run: keval's CPU and the wall time in seconds, the share of a core that viewer and readers took, and what a
    reader got at least."""

    cpu: float
    wall: float
    viewing: float
    events: int | None


@attrs.frozen
class Turn:
    """The same run without viewers, with each number of viewers, and without but beside a bystander as busy as they."""

    alone: Measured
    viewed: dict[int, Measured]
    beside: dict[int, Measured]


@contextmanager
def bystander(share: float) -> Iterator[None]:
    """Keep a core busy for a share of the time."""
    with subprocess.Popen([sys.executable, "-c", _BYSTANDER, str(share)]) as process:
        try:
            yield
        finally:
            process.terminate()


def config(load: str, port: int) -> dict[str, Any]:
    """Return the config of a load; `port` is that of the slow model."""
    agents: dict[str, Any] = {"openai": {"model": "openai/weather"}}
    contexts: dict[str, Any] = {"weather": {"transport": "stdio"}}
    if load == "waiting":
        agents, contexts = {"bench": {"type": "bench/http", "port": port}}, {}
    return {
        "dataset": {"path": "q.jsonl"},
        "agents": agents,
        "contexts": contexts,
        "conditions": {"it": {"contexts": [*contexts]}},
        "metrics": ["bench/one"],
        "plugins": ["bench/cpu"],
        "execution": {"max_concurrent": AT_ONCE[load]},
    }


def compare(load: str, port: int) -> None:
    """Print what viewers cost a run of this load, in the working directory."""
    from keval.config.load import load as read
    from keval.plan.build import make_plan
    from keval.run.active_run import RunOptions
    from keval.run.flow import run_plan

    questions = [{"id": str(number), "question": "What is the weather in Rome?"} for number in range(LOADS[load])]
    Path("eval.yaml").write_text(json.dumps(config(load, port)), encoding="utf-8")
    Path("q.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions), encoding="utf-8")
    plan, results = make_plan(read(Path("eval.yaml"))), Path("results")
    results.mkdir()
    with Viewer.serve(results) as viewer:

        def run(count: int) -> Measured:
            readers, before, began = Readers(viewer, count), viewer.cpu, time.perf_counter()
            asyncio.run(run_plan(plan, results, RunOptions([("bench/readers", readers)])))
            wall = time.perf_counter() - began
            readers.end()
            share = (viewer.cpu - before + readers.cpu) / wall
            return Measured(float(Path("cpu.txt").read_text(encoding="utf-8")), wall, share, readers.events)

        def turn() -> Turn:
            """Run without viewers, with each number of them, and beside what uses as much CPU as they did."""
            alone, viewed = run(0), {count: run(count) for count in VIEWERS}
            beside = {}
            for count, measured in viewed.items():
                with bystander(measured.viewing):
                    beside[count] = run(0)
            return Turn(alone, viewed, beside)

        run(1)  # it imports what is imported late
        turns = [turn() for _ in range(ROUNDS)]
        calls = {}
        for count in (0, *VIEWERS):
            profile = Profile()
            profile.runcall(run, count)
            calls[count] = Stats(profile).total_calls  # type: ignore[attr-defined]
    for count in VIEWERS:
        viewed = [turn.viewed[count].cpu / turn.alone.cpu for turn in turns]
        beside = [turn.beside[count].cpu / turn.alone.cpu for turn in turns]
        without = [turn.viewed[count].cpu / turn.beside[count].cpu for turn in turns]
        share = median(turn.viewed[count].viewing for turn in turns)
        events = min(turn.viewed[count].events or 0 for turn in turns)
        print(f"{count} viewers: x{calls[count] / calls[0]:.3f} calls of functions;", end=" ")
        print(f"CPU x{median(viewed):.3f}, beside a bystander that takes as much as they do ({share:.0%} of a core)")
        print(f"  x{median(beside):.3f}, so that looking costs x{median(without):.3f}", end=" ")
        print(f"({min(without):.3f} to {max(without):.3f} in {ROUNDS} rounds);", end=" ")
        print(f"each viewer got {events} parts or more", flush=True)
    cpu, wall = turns[-1].alone.cpu, turns[-1].alone.wall
    print(f"  without viewers: {1000 * cpu / LOADS[load]:.2f} ms of CPU a trial, {cpu / wall:.0%} of a core")


def main() -> None:
    if len(sys.argv) == 3:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # a disk; /tmp may be none
            os.chdir(folder)
            compare(sys.argv[1], int(sys.argv[2]))
            os.chdir("..")
        return
    from latency import model
    from recording import gateway

    installed = str(Path(__file__).parent / "installed")
    with gateway(), model(LATENCY) as port:
        for load, trials in LOADS.items():
            print(f"{load}: {trials} trials, {AT_ONCE[load]} at once", flush=True)
            command = [sys.executable, __file__, load, str(port)]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": installed})
    print("wanted: at most x1.02")


if __name__ == "__main__":
    main()
