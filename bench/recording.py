"""What it costs to record a run: CPU with and without `--record`, in pairs, for three agents and two kinds of models.

A trial is two model calls and a call of the weather server, which the trials share. A model that is not simulated, for
keval, is asked through its proxy either way by `gadk` and `ms`. keval's own simulated models are asked through it only
if the run is recorded. All runs of an agent are made by one process, by turns, so that what it imports and what the
machine does meanwhile is the same for both; only keval's own CPU counts, from the first trial to the last score, as
models and servers are processes of their own. How many functions Python calls for a trial does not depend on what else
the machine does, so that is counted, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from statistics import median

from measure import part

PAIRS, TRIALS, AT_ONCE = part(3), part(40), 8
NOT_SIMULATED = {"openai": "openai/weather", "gadk": "google/weather", "ms": "openai/weather"}
KINDS = {"not simulated": NOT_SIMULATED, "simulated": dict.fromkeys(NOT_SIMULATED, "simulated/weather")}
_LOOPBACK = ("OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")


@contextmanager
def gateway() -> Iterator[None]:
    """Serve the simulated model where keval takes it for OpenAI and Google."""
    command = [sys.executable, "-m", "keval_gateway", "--simulate", "--port=0", "--token=key-of-nobody"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            for part in line.split():
                name, equals, value = part.partition("=")
                if equals and name in _LOOPBACK:
                    os.environ[name] = value
            if "GEMINI" in line:
                break
        os.environ.update(OPENAI_API_KEY="key-of-nobody", GEMINI_API_KEY="key-of-nobody")
        try:
            yield
        finally:
            server.terminate()


def compare(agent: str, model: str) -> None:
    """Print what recording costs one agent; the environment leads to its model."""
    from keval.config.load import load
    from keval.plan.build import make_plan
    from keval.run.active_run import RunOptions
    from keval.run.flow import run_plan

    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {agent: {"model": model}},
        "contexts": {"weather": {"transport": "stdio"}},
        "conditions": {"with_weather": {"contexts": ["weather"]}},
        "metrics": ["bench/one"],
        "plugins": ["bench/cpu"],
        "execution": {"max_concurrent": AT_ONCE},
    }
    questions = [{"id": str(number), "question": "What is the weather in Rome?"} for number in range(TRIALS)]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # a disk; /tmp may be none
        os.chdir(folder)
        Path("eval.yaml").write_text(json.dumps(config), encoding="utf-8")
        Path("q.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions), encoding="utf-8")
        plan = make_plan(load(Path("eval.yaml")))

        def cpu(*, record: bool) -> float:
            asyncio.run(run_plan(plan, Path("results"), RunOptions(record=record)))
            return float(Path("cpu.txt").read_text(encoding="utf-8"))

        cpu(record=True), cpu(record=False)
        plain, recorded = [], []
        for _ in range(PAIRS):
            plain.append(cpu(record=False))
            recorded.append(cpu(record=True))
        profiles = [Profile(), Profile()]
        for profile, record in zip(profiles, (False, True), strict=True):
            profile.runcall(cpu, record=record)
        before_calls, after_calls = (Stats(profile).total_calls for profile in profiles)  # type: ignore[attr-defined]
        size = median(path.stat().st_size for path in Path("results").glob("*/*/recording/*")) / TRIALS
        os.chdir("..")
    ratio = median(after / before for before, after in zip(plain, recorded, strict=True))
    least = min(recorded) / min(plain)
    print(f"CPU x{least:.3f} by the least of {PAIRS} runs each, x{ratio:.3f} by the median of the pairs;")
    print(f"  x{after_calls / before_calls:.3f} calls of functions; {size:.0f} bytes a trial kept,")
    print(f"  {1000 * min(plain) / TRIALS:.1f} ms of CPU a trial without", flush=True)


def main() -> None:
    if len(sys.argv) == 3:
        compare(*sys.argv[1:])
        return
    installed = str(Path(__file__).parent / "installed")
    with gateway():
        for kind, models in list(KINDS.items())[: part(len(KINDS))]:
            for agent, model in models.items():
                print(f"{agent}, {kind}: ", end="", flush=True)
                command = [sys.executable, __file__, agent, model]
                subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": installed})
    print("wanted: at most x1.05, of models that are not simulated")


if __name__ == "__main__":
    main()
