"""What the executor `ray` gains on all cores of this machine, and what it costs, beside `local`.

    uv run --extra ray python bench/ray_executor.py [trials|overhead|score|limiter…]

Both executors run in turns, and figures are medians of rounds. CPU is that of all processes of a command: keval's own,
its workers, the limiter, MCP servers, and Ray's own. They are found in /proc by a variable that all of them inherit.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import attrs
import recorded
from measure import INSTALLED, part

from keval import Manifest, open_run
from keval.plugin import Endpoint, RunLimits
from keval_ray.cluster import Demand, actor, connected, here
from keval_ray.limiter import Limiter, RemoteLimits

CORES, ROUNDS = os.cpu_count() or 1, part(3)
REPETITIONS, INSTANT, ANSWERS, REQUESTS = (
    part(16),
    part(20_000, least=4_000),
    part(10_000, least=20),
    part(2_000, least=64),
)
QUESTIONS, QUESTION_COUNT = Path(__file__).parents[1] / "examples" / "weather" / "questions.jsonl", 25
EXECUTORS = ("local", "ray")
_MARK = "KEVAL_BENCH_MARK"
_NAMED = {"ray::RayWorker": "workers", "ray::Limiter": "limiter", "ray::": "Ray", "/ray/": "Ray"}
"""What a process is whose command line has this, the first of them."""
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOKING = 0.05
"""Seconds between two looks at the processes of a command."""


@attrs.frozen
class Took:
    """What a command took: seconds until the first trial or score, from there to the last one, and in all.

    `count` is how many there were. CPU is in seconds by kind of process, between the first and the last, and in all.
    """

    first: float
    steady: float
    whole: float
    count: int
    steady_cpu: Mapping[str, float]
    cpu: Mapping[str, float]

    @property
    def steady_cpu_ms(self) -> float:
        """CPU of each trial or score, of all processes, in ms."""
        return sum(self.steady_cpu.values()) / (self.count - 1) * 1000


@attrs.define
class Processes:
    """The processes that have a mark in their environment, and the CPU of each until now or until it ended."""

    _mark: bytes
    _root: int
    _marked: dict[int, bool] = attrs.field(factory=dict)
    _used: dict[int, tuple[str, float]] = attrs.field(factory=dict)

    def cpu(self) -> dict[str, float]:
        """Return the CPU of all of them by kind, in seconds."""
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            try:
                if pid not in self._marked:
                    self._marked[pid] = pid == self._root or self._mark in (path / "environ").read_bytes()
                if self._marked[pid]:
                    fields = (path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                    seconds = (int(fields[11]) + int(fields[12])) / _TICKS
                    command = (path / "cmdline").read_bytes().decode()
                    kind = self._kind(pid, command) if command else self._used[pid][0]  # a zombie has none
                    self._used[pid] = kind, seconds
            except OSError:  # it has ended
                continue
        total: dict[str, float] = defaultdict(float)
        for kind, seconds in self._used.values():
            total[kind] += seconds
        return total

    def _kind(self, pid: int, command: str) -> str:
        if pid == self._root:
            return "keval"
        return next((kind for name, kind in _NAMED.items() if name in command), "servers")


def took(folder: Path, *arguments: str, what: str = "finished") -> Took:
    """Run a command of keval to its end. Its config names the plugin `bench/clock`."""
    mark = secrets.token_hex(8)
    environ = {**os.environ, "PYTHONPATH": str(INSTALLED), _MARK: mark}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every worker would compile what it imports
    began = time.time()
    process = subprocess.Popen([sys.executable, "-m", "keval", *arguments, "-q"], cwd=folder, env=environ)
    processes, looks = Processes(mark.encode(), process.pid), [(began, dict[str, float]())]
    while process.poll() is None:
        looks.append((time.time(), processes.cpu()))
        time.sleep(_LOOKING)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    ended = time.time()
    first, last, count = json.loads((folder / "clock.json").read_text(encoding="utf-8"))[what]
    before, after = (max(look for look in looks if look[0] <= at)[1] for at in (first, last))
    steady = {kind: seconds - before.get(kind, 0) for kind, seconds in after.items()}
    return Took(first - began, last - first, ended - began, count, steady, looks[-1][1])


def in_turns(run: Callable[[str], Took], rounds: int = ROUNDS) -> dict[str, list[Took]]:
    """Measure with each executor in turns."""
    found: dict[str, list[Took]] = {executor: [] for executor in EXECUTORS}
    for _ in range(rounds):
        for executor, each in found.items():
            each.append(run(executor))
    return found


def ratio(found: Mapping[str, list[Took]], of: Callable[[Took], float]) -> float:
    """Return the median over rounds of how much `local` takes for each that `ray` takes."""
    return median(of(local) / of(ray) for local, ray in zip(*found.values(), strict=True))


def line(told: str, value: str, wanted: str = "") -> None:
    print(f"{told:<58}{value:>16}  {wanted}", flush=True)


def by_kind(found: Mapping[str, list[Took]]) -> None:
    """Print the CPU of each trial or score by kind of process."""
    for executor, each in found.items():
        kinds = sorted({kind for one in each for kind in one.steady_cpu})
        parts = {kind: median(one.steady_cpu.get(kind, 0) / (one.count - 1) for one in each) * 1000 for kind in kinds}
        told = ", ".join(f"{kind} {ms:.2f}" for kind, ms in parts.items() if ms >= 0.005)
        line(f"  CPU of each with {executor}: {told}", f"{median(one.steady_cpu_ms for one in each):.2f} ms")


def config(folder: Path, **parts: Any) -> None:
    common = {"dataset": {"path": "q.jsonl"}, "plugins": ["bench/clock", *parts.pop("plugins", ())]}
    (folder / "eval.yaml").write_text(json.dumps(common | parts), encoding="utf-8")


def trials(folder: Path) -> None:
    """An agent in a framework, with MCP server and model: `gadk`, the weather bundle and the simulated model."""
    count = QUESTION_COUNT * REPETITIONS
    (folder / "q.jsonl").write_text("".join(QUESTIONS.open(encoding="utf-8").readlines()[:QUESTION_COUNT]))
    prompt = "You help with the weather. The user's id is user-1."
    config(
        folder,
        agents={"gadk": {"model": "simulated/weather"}},
        contexts={"weather": {}},
        conditions={"with_weather": {"system_prompt": prompt, "contexts": ["weather"]}},
        metrics=["weather/accuracy"],
        plugins=["weather/ground-truth"],
        execution={"num_repetitions": REPETITIONS, "max_concurrent": 8 * CORES},
    )
    found = in_turns(lambda executor: took(folder, "run", "eval.yaml", "--executor", executor))
    line(
        f"{count} trials of gadk, from the first to the last",
        f"{ratio(found, lambda one: one.steady):.2f} x",
        f"wanted: at least {0.85 * CORES:.2f}",
    )
    line("  the whole command", f"{ratio(found, lambda one: one.whole):.2f} x")
    for executor, each in found.items():
        line(f"  until the first trial with {executor}", f"{median(one.first for one in each):.1f} s")
    by_kind(found)


def overhead(folder: Path) -> None:
    """An agent that answers at once: what is left is what the executor costs."""
    (folder / "q.jsonl").write_text("".join(f'{{"id": "{i}", "question": "Is it {i}?"}}\n' for i in range(200)))
    config(
        folder,
        agents={"bench": {"type": "bench/instant"}},
        metrics=["bench/one"],
        conditions={"baseline": {}},
        execution={"num_repetitions": max(1, INSTANT // 200), "max_concurrent": 32 * CORES},
    )
    found = in_turns(lambda executor: took(folder, "run", "eval.yaml", "--executor", executor))
    more = median(ray.steady_cpu_ms - local.steady_cpu_ms for local, ray in zip(*found.values(), strict=True))
    line(f"{found['ray'][0].count} trials that cost nothing: CPU of each more than local", f"{more:.2f} ms")
    by_kind(found)
    for executor, each in found.items():
        line(f"  trials a second with {executor}", f"{median(one.count / one.steady for one in each):.0f} /s")
    keval = median(one.steady_cpu["keval"] / (one.count - 1) for one in found["ray"])
    line("  trials that the driver can take in, a second of its CPU", f"{1 / keval:.0f} /s")


def score(folder: Path) -> None:
    """Recorded answers, scored again by the 14 weather metrics."""
    recorded.prepare(folder, ANSWERS)
    config = json.loads((folder / "eval.yaml").read_text(encoding="utf-8"))
    (folder / "eval.yaml").write_text(json.dumps({**config, "plugins": ["bench/clock"]}), encoding="utf-8")
    found = in_turns(lambda executor: took(folder, "run", "eval.yaml", "--executor", executor))
    line(f"{ANSWERS} recorded answers, first to last trial", f"{ratio(found, lambda one: one.steady):.2f} x")
    line("  the whole command", f"{ratio(found, lambda one: one.whole):.2f} x")
    by_kind(found)
    found = in_turns(lambda executor: took(folder, "score", "latest", "--executor", executor, what="scored"))
    line("  scored again, first to last", f"{ratio(found, lambda one: one.steady):.2f} x", "wanted: above 1")
    line("  the whole command", f"{ratio(found, lambda one: one.whole):.2f} x")
    by_kind(found)


def limiter(folder: Path) -> None:
    """The limiter, asked about requests as a worker asks it."""
    (folder / "q.jsonl").write_text('{"question": "Is it?"}\n')
    config(folder, agents={"bench": {"type": "bench/instant"}}, metrics=["bench/one"], conditions={"baseline": {}})
    took(folder, "run", "eval.yaml")
    asyncio.run(_limiter(open_run("latest", folder / "results").manifest))


async def _limiter(manifest: Manifest) -> None:
    endpoint = Endpoint("openai/m", {"openai-chat": "http://127.0.0.1:1/v1"}, "key")
    async with connected(None, Demand(1, 1, {}), manifest):
        asked = actor(Limiter, num_cpus=0, max_concurrency=1000, scheduling_strategy=here()).remote(
            RunLimits.of(manifest)
        )
        load = RemoteLimits(asked, "worker-1", RunLimits.of(manifest)).load(endpoint)

        async def request(times: list[float]) -> None:
            began = time.perf_counter()
            await load.admit()
            times.append(time.perf_counter() - began)
            await load.leave("answered", "agent")

        async def requests(count: int) -> list[float]:
            times: list[float] = []
            for _ in range(count):
                await request(times)
            return times

        await requests(100)
        alone = await requests(REQUESTS)
        line("limiter: until a request is admitted, one at a time", f"{median(alone) * 1000:.2f} ms")
        spent = asked.__ray_call__.remote
        began, cpu, its_cpu = time.perf_counter(), time.process_time(), await spent(lambda _: time.process_time())
        await asyncio.gather(*(requests(REQUESTS // 32) for _ in range(32)))
        count = REQUESTS // 32 * 32
        line("  32 at a time: requests", f"{count / (time.perf_counter() - began):.0f} /s")
        line("  CPU of whoever asks, for each", f"{(time.process_time() - cpu) / count * 1000:.2f} ms")
        its_cpu = await spent(lambda _: time.process_time()) - its_cpu
        line("  CPU of the limiter, for each", f"{its_cpu / count * 1000:.2f} ms")


SUBJECTS = {each.__name__: each for each in (trials, overhead, score, limiter)}


def main() -> None:
    for name in sys.argv[1:] or SUBJECTS:
        with tempfile.TemporaryDirectory() as folder:
            SUBJECTS[name](Path(folder))


if __name__ == "__main__":
    main()
