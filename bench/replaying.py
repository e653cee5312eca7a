"""What a replay costs, against the run that it replays: CPU and time, for three agents.

A trial is two model calls and a call of the weather server, which the trials share, as in `recording.py`. Only keval's
own CPU counts, with what it takes to begin and to end a run; the recorded run has its model and its server in processes
of their own, and a replay has none. The model answers at once, so a replay is no faster for want of waiting.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from measure import part

RUNS, TRIALS, AT_ONCE = part(5), part(60), 8


def compare(agent: str, model: str) -> None:
    """Print what a replay costs of what the recorded run did; the environment leads to the model of that."""
    from keval.config.load import load
    from keval.plan.build import make_plan
    from keval.redaction import Redactor
    from keval.run.active_run import RunOptions
    from keval.run.flow import run_plan
    from keval.run.select import Selection
    from keval_replay.replay import replay_run
    from keval_replay.replay_plan import planned_replay

    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {agent: {"model": model}},
        "contexts": {"weather": {"transport": "stdio"}},
        "conditions": {"with_weather": {"contexts": ["weather"]}},
        "metrics": ["weather/tool_call_count"],
        "execution": {"max_concurrent": AT_ONCE},
    }
    questions = [{"id": str(number), "question": "What is the weather in Rome?"} for number in range(TRIALS)]

    def cost(work: Coroutine[Any, Any, Any]) -> tuple[float, float, Any]:
        cpu, clock = time.process_time(), time.perf_counter()
        done = asyncio.run(work)
        return time.process_time() - cpu, time.perf_counter() - clock, done

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # a disk; /tmp may be none
        os.chdir(folder)
        Path("eval.yaml").write_text(json.dumps(config), encoding="utf-8")
        Path("q.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions), encoding="utf-8")
        plan = make_plan(load(Path("eval.yaml")))
        recorded, replayed = [], []
        for number in range(RUNS + 1):
            *took, (run, summary) = cost(run_plan(plan, Path("results"), RunOptions(record=True)))
            with planned_replay(Path("eval.yaml"), Selection(), run, "fail", Redactor()) as (again, replay):
                *took_again, (_, again_summary) = cost(replay_run(replay, again, Path("results")))
            assert [sum(arm.failed for arm in each.trials) for each in (summary, again_summary)] == [0, 0]
            if number:  # the first ones import what they need
                recorded.append(took)
                replayed.append(took_again)
        os.chdir("..")
    cpu, clock = ([min(each[kind] for each in runs) for runs in (recorded, replayed)] for kind in (0, 1))
    print(
        f"CPU x{cpu[1] / cpu[0]:.2f} ({1000 * cpu[1] / TRIALS:.1f} ms a trial), time x{clock[1] / clock[0]:.2f}"
        f" ({TRIALS / clock[1]:.0f} trials a second)",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) == 3:
        compare(*sys.argv[1:])
        return
    from recording import NOT_SIMULATED, gateway

    with gateway():
        for agent, model in NOT_SIMULATED.items():
            print(f"{agent}: ", end="", flush=True)
            subprocess.run([sys.executable, __file__, agent, model], check=True)
    print("wanted: less CPU than the recorded run takes")


if __name__ == "__main__":
    main()
