"""A run that is killed again and again: what was done is never done again, and the end is that of a run left alone."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import ON_PATH, Project
from tests.end_to_end.servers.model import gateway
from tests.end_to_end.test_tool_calls import listening

CONFIG = """
name: killed
dataset: {{path: questions.jsonl}}
agents: {{openai: {{model: openai/gpt-test}}}}
contexts: {{tally: {{type: http, url: "{url}"}}}}
conditions: {{baseline: {{}}, with_tally: {{contexts: [tally]}}}}
metrics: [basic/turns]
plugins: [double/announcing: {{path: announced.txt}}]
execution: {{max_concurrent: 2}}
"""
SAMPLES = 60
KILLS = 8


class Model:
    """Looks its question up where it has a tool, and counts what it is asked."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds = seconds
        self.asked = Counter[str]()

    async def __call__(self, request: ChatRequest) -> ChatReply:
        question = request.messages[0].text
        self.asked[f"openai/{'with_tally' if request.tools else 'baseline'}/{question}/1"] += 1
        await asyncio.sleep(self.seconds)
        if request.tools and request.messages[-1].role == "user":
            return ChatReply(calls=(ChatCall("look", {"where": question}),))
        return ChatReply(f"It is {question}")


def lines(path: Path) -> list[str]:
    """The complete lines of a file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def found(path: Path) -> dict[str, Any]:
    """What a summary says, but for its run's id and how long things took; the tokens are those of numbered results."""
    summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for arm in summary["trials"]:
        for differs in ("duration", "duration_median", "duration_p95", "usage", "cost"):
            del arm[differs]
    for arm in summary["arms"]:
        del arm["per_1000_tokens"]
    del summary["elapsed"], summary["expenses"]
    said: dict[str, Any] = json.loads(json.dumps(summary).replace(summary["run"], "RUN"))
    return said


def start(project: Project, environ: Mapping[str, str], *command: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(ON_PATH)
    arguments = [sys.executable, "-m", "keval", *command, "-q"]
    return subprocess.Popen(arguments, cwd=project.root, env={**os.environ, "PYTHONPATH": path, **environ})


def wait_for_progress(process: subprocess.Popen[bytes], announced: Path) -> None:
    """Wait until the process has finished another trial."""
    had, deadline = len(lines(announced)), time.monotonic() + 60
    while len(lines(announced)) == had:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@attrs.frozen
class Work:
    """How often the model was asked and the server called, by trial."""

    asked: Counter[str]
    called: Counter[str]

    @classmethod
    def so_far(cls, project: Project, model: Model) -> Work:
        called = Counter(json.loads(line)["trial"] for line in lines(project.root / "tally.jsonl"))
        return cls(Counter(model.asked), called)

    def of(self, trials: set[str]) -> dict[str, tuple[int, int]]:
        return {trial: (self.asked[trial], self.called[trial]) for trial in trials}


@pytest.mark.slow
def test_a_run_that_is_killed_eight_times_does_nothing_twice(
    project: Project, record_property: Callable[[str, object], None]
) -> None:
    samples = "".join(json.dumps({"id": f"{n}", "question": f"{n}"}) + "\n" for n in range(SAMPLES))
    model, chance, journal = Model(), random.Random(7), project.root / "tally.jsonl"
    announced = project.root / "announced.txt"
    journal.touch()
    with listening(journal, "http") as url, gateway(model) as environ:
        project.write(questions_jsonl=samples, eval_yaml=CONFIG.format(url=url))
        command, done, before = ["run", "eval.yaml"], set[str](), Work(Counter(), Counter())
        for _ in range(KILLS):
            process = start(project, environ, *command)
            wait_for_progress(process, announced)
            time.sleep(chance.uniform(0, 0.15))
            process.send_signal(signal.SIGKILL)
            process.wait()
            command = ["resume", "latest"]

            assert before.of(done) == Work.so_far(project, model).of(done)
            done = {json.loads(line)["id"] for line in lines(project.run_directory() / "trials.jsonl")}
            assert {*lines(announced)} <= done
            before = Work.so_far(project, model)
        outcome = project.keval("resume", "latest", env=environ)

        assert 0 == outcome.code, outcome.stderr
        assert before.of(done) == Work.so_far(project, model).of(done)
        assert KILLS <= len(done) < 2 * SAMPLES
        trials = [trial["id"] for trial in project.lines("trials.jsonl")]
        assert (2 * SAMPLES, 2 * SAMPLES) == (len(trials), len({*trials}))
        assert KILLS == len(project.read("manifest.json")["resumed"])
        project.keval("run", "eval.yaml", "-o", "whole", env=environ)
    (whole,) = project.root.glob("whole/*/*/summary.json")
    assert found(whole) == found(project.run_directory() / "summary.json")
    record_property("kills", KILLS)
