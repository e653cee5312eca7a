"""Workers, nodes and the driver die: every trial is recorded exactly once, and nothing outlives its run."""

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

import pytest

from keval.store.run import Run, list_runs
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import ON_PATH, Project
from tests.end_to_end.servers.model import gateway
from tests.end_to_end.test_tool_calls import listening
from tests.plugins.ray.conftest import RunningCluster, running_cluster

pytestmark = pytest.mark.slow

CONFIG = """
name: killed
dataset: {{path: questions.jsonl}}
agents: {{openai: {{model: openai/gpt-test}}}}
contexts: {{tally: {{type: http, url: "{url}"}}}}
conditions: {{baseline: {{}}, with_tally: {{contexts: [tally]}}}}
metrics: [basic/turns]
execution: {{max_concurrent: 6, grace_seconds: 2, executor: {{type: ray, address: auto}}}}
"""
KILLS = 10


class Model:
    """Looks its question up where it has a tool, and counts what it is asked."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = Counter[str]()

    async def __call__(self, request: ChatRequest) -> ChatReply:
        question = request.messages[0].text
        self.asked[f"openai/{'with_tally' if request.tools else 'baseline'}/{question}/1"] += 1
        await asyncio.sleep(self.seconds)
        if request.tools and request.messages[-1].role == "user":
            return ChatReply(calls=(ChatCall("look", {"where": question}),))
        return ChatReply(f"It is {question}")


def write(project: Project, url: str, samples: int) -> None:
    (project.root / "journal.jsonl").touch()
    questions = [{"id": f"q{number}", "question": f"q{number}"} for number in range(samples)]
    project.write(
        eval_yaml=CONFIG.format(url=url), questions_jsonl="".join(json.dumps(each) + "\n" for each in questions)
    )


def start(project: Project, environ: Mapping[str, str], *command: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH), **environ}
    arguments = [sys.executable, "-m", "keval", *command]
    return subprocess.Popen(arguments, cwd=project.root, env=environ, stderr=subprocess.PIPE, text=True)


def count(project: Project) -> int:
    """Trials on disk."""
    return sum(path.read_bytes().count(b"\n") for path in project.root.glob("results/*/*/trials.jsonl"))


def until(reached: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)


def only_run(project: Project) -> Run:
    (run,) = list_runs(project.root / "results")
    return run


def test_a_node_that_is_killed_ten_times_costs_no_trial(project: Project) -> None:
    model, rng = Model(0.05), random.Random(5)
    with running_cluster() as cluster, listening(project.root / "journal.jsonl", "http") as url, gateway(model) as told:
        write(project, url, 300)
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        process = start(project, environ, "run", "eval.yaml", "--log-format", "json", "-q")
        names = ["1", "2"]
        for kill in range(KILLS):
            before = count(project)
            until(lambda before=before: count(project) > before or process.poll() is not None)
            time.sleep(rng.uniform(0, 0.5))
            if process.poll() is not None:
                break
            cluster.command(f"kill {names.pop(rng.randrange(2))}")
            names.append(str(kill + 3))
            cluster.command(f"add {names[-1]}")
        _, log = process.communicate(timeout=300)

    assert 0 == process.returncode, log
    run = only_run(project)
    ids = [trial.id for trial in run.trials_as_finished()]
    assert 600 == len(ids) == len({*ids})
    assert 600 == sum(1 for line in run.scores())
    # What was in flight on the node was asked again, and nothing else.
    answered = {name: times for name, times in model.asked.items() if name in ids}
    assert {*ids} == {*answered}
    needed = {name: 2 if "with_tally" in name else 1 for name in ids}
    assert {name for name in ids if answered[name] < needed[name]} == set()
    again = sum(answered[name] > needed[name] for name in ids)
    lost = [worker for worker in run.manifest.workers if worker.lost]
    assert KILLS - 1 <= len(lost)
    assert 0 < again <= 6 * len(lost)
    assert all(trial.failure is None and not trial.attempts for trial in run.trials())


@pytest.mark.parametrize("executor", ["ray", "local"])
def test_a_run_whose_driver_is_killed_goes_on_with_either_executor(
    project: Project, cluster: RunningCluster, executor: str
) -> None:
    model = Model(0.05)
    with listening(project.root / "journal.jsonl", "http") as url, gateway(model) as told:
        write(project, url, 100)
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        process = start(project, environ, "run", "eval.yaml", "-q")
        until(lambda: count(project) > 40)
        process.kill()
        process.communicate()
        until(lambda: not _workers(cluster), 30)
        done = project.spawn("resume", "latest", "-q", "--executor", executor, env=environ)

    assert 0 == done.code, done.stderr
    run = only_run(project)
    ids = [trial.id for trial in run.trials_as_finished()]
    assert 200 == len(ids) == len({*ids})
    assert 200 == sum(1 for line in run.scores())


def test_ctrl_c_ends_everything_everywhere(project: Project, cluster: RunningCluster) -> None:
    model = Model(30)
    with listening(project.root / "journal.jsonl", "http") as url, gateway(model) as told:
        write(project, url, 20)
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        process = start(project, environ, "run", "eval.yaml", "-q")
        until(lambda: len(model.asked) == 6)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)

    assert 130 == process.returncode, log
    assert "keval resume" in log
    assert 15 > time.monotonic() - began  # 2 s for trials, and what closing takes
    until(lambda: not _workers(cluster), 10)


def test_a_local_ray_ends_with_a_driver_that_is_killed(project: Project, tmp_path: Path) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    model = Model(0.05)
    with listening(project.root / "journal.jsonl", "http") as url, gateway(model) as told:
        write(project, url, 100)
        config = (project.root / "eval.yaml").read_text(encoding="utf-8").replace(", address: auto", "")
        project.write(eval_yaml=config)
        environ = {**told, "TMPDIR": str(temporary)}
        process = start(project, environ, "run", "eval.yaml", "-q")
        until(lambda: count(project) > 10)
        (session,) = temporary.glob("keval-ray-*")
        assert _naming(str(session))
        process.kill()
        process.communicate()

    until(lambda: not _naming(str(session)), 60)


def _naming(text: str) -> list[int]:
    """The processes whose command line has a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _workers(cluster: RunningCluster) -> list[int]:
    return _naming("ray::RayWorker")
