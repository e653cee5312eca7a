"""What a judged trial costs: agent `openai`, judge `openai` with three rubrics in one call, 2,000 trials.

CPU is held against two bare `AsyncOpenAI` calls with the same prompts, wall time against the ideal at a latency, and
peak memory at 2,000 trials against that at 200. The model is the gateway in a process of its own, which answers at once
with fixed texts, so that its rules cost nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Cost, keval, measure, part

FEW, TRIALS, AT_ONCE = part(200), part(2_000), 32
LATENCY, AT_ONCE_WITH_LATENCY = 0.2, 100

MODEL = """
import asyncio, json, sys
from keval_gateway import ChatReply, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve

def grade(schema):
    return {
        key: [] if part["type"] == "array" else {"reasoning": "It has every fact.", "score": 4}
        for key, part in schema["properties"].items()
    }

async def respond(request):
    await asyncio.sleep(float(sys.argv[1]))
    if request.response_schema is not None:
        return ChatReply(json.dumps(grade(request.response_schema)))
    return ChatReply("Yes, it is: the manual says so, and nothing speaks against it.")

async def main():
    async with serve(build_app(respond)) as base:
        print(wire_urls(base)["openai-chat"], flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""

# As a script of a few lines would do it: the SDK's own client with its defaults, and its typed methods.
BARE = """
import asyncio, json, sys
from openai import AsyncOpenAI

async def main():
    trials, asked, judged = int(sys.argv[1]), *json.load(open("requests.json"))
    async with AsyncOpenAI() as client:
        numbers = iter(range(trials))
        async def work():
            for _ in numbers:
                await client.chat.completions.create(**asked)
                json.loads((await client.chat.completions.create(**judged)).choices[0].message.content)
        async with asyncio.TaskGroup() as group:
            for _ in range(int(sys.argv[2])):
                group.create_task(work())

asyncio.run(main())
"""

_WRITE = """async def respond(request):
    with open(sys.argv[2], "a") as file:
        file.write(json.dumps(request.raw) + "\\n")
"""


@contextmanager
def model(latency: float = 0.0, *, seen: Path | None = None) -> Iterator[None]:
    """Run the model in a process of its own, with the environment that leads to it."""
    script = MODEL if seen is None else MODEL.replace("async def respond(request):", _WRITE)
    command = [sys.executable, "-c", script, str(latency), *([str(seen)] if seen else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        os.environ["OPENAI_BASE_URL"] = server.stdout.readline().strip()
        os.environ["OPENAI_API_KEY"] = "key-of-nobody"
        try:
            yield
        finally:
            server.communicate()


def judged(folder: Path, trials: int, at_once: int) -> Cost:
    """Run that many judged trials."""
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"openai": {"model": "gpt-bench"}},
        "conditions": {"baseline": {"system_prompt": "Answer the question."}},
        "judge": {"model": "openai/gpt-bench"},
        "execution": {"max_concurrent": at_once},
    }
    return keval(folder, config, trials)


def bare(folder: Path, trials: int, at_once: int) -> Cost:
    """Make the same two requests that many times."""
    return measure([sys.executable, "-c", BARE, str(trials), str(at_once)], folder)


def captured(folder: Path) -> None:
    """Write down the two requests of one trial."""
    with model(seen=folder / "seen.jsonl"):
        judged(folder, 1, 1)
    lines = (folder / "seen.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "requests.json").write_text(json.dumps([json.loads(line) for line in lines]), encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        captured(folder)
        with model():
            calls_few, calls = bare(folder, FEW, AT_ONCE), bare(folder, TRIALS, AT_ONCE)
            few, many = judged(folder, FEW, AT_ONCE), judged(folder, TRIALS, AT_ONCE)
        with model(LATENCY):
            ideal = TRIALS * 2 * LATENCY / AT_ONCE_WITH_LATENCY
            start_up = judged(folder, 1, 1).wall - 2 * LATENCY
            waited = judged(folder, TRIALS, AT_ONCE_WITH_LATENCY).wall
            bare_waited = bare(folder, TRIALS, AT_ONCE_WITH_LATENCY).wall
    print(f"CPU of {TRIALS} judged trials: {many.cpu / calls.cpu:.2f} times that of two bare calls each,")
    print("  start-up included")
    print(f"  ({many.cpu / TRIALS * 1000:.2f} against {calls.cpu / TRIALS * 1000:.2f} ms a trial); wanted: at most 1.5")
    further = (many.cpu - few.cpu) / (calls.cpu - calls_few.cpu)
    print(f"  each further trial: {further:.2f} times")
    print(f"at {LATENCY * 1000:.0f} ms, {AT_ONCE_WITH_LATENCY} at once: {waited:.2f} s, ideal {ideal:.1f} s:")
    print(f"  {ideal / waited:.0%} of the ideal, start-up ({start_up:.2f} s) included; wanted: at least 85 %")
    print(f"  {ideal / (waited - start_up):.0%} without start-up; bare calls, with theirs: {ideal / bare_waited:.0%}")
    print(f"peak memory: {few.peak:.0f} MiB at {FEW} trials, {many.peak:.0f} MiB at {TRIALS}:")
    print(f"  {many.peak / few.peak:.2f} times; wanted: at most 1.15")


if __name__ == "__main__":
    main()
