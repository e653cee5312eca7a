"""Workers, nodes and the driver die: every trial is recorded exactly once, and nothing outlives its run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest

from keval.store.run import Run, list_runs
from tests.conftest import ON_PATH, Project
from tests.end_to_end.servers.model import gateway
from tests.end_to_end.test_resume import Model
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
KILLS, SAMPLES = 4, 120


def write(project: Project, url: str, samples: int) -> None:
    (project.root / "journal.jsonl").touch()
    questions = [{"id": f"q{number}", "question": f"q{number}"} for number in range(samples)]
    project.write(
        eval_yaml=CONFIG.format(url=url), questions_jsonl="".join(json.dumps(each) + "\n" for each in questions)
    )


@attrs.frozen
class Started:
    """A command under way in a process of its own; what it prints is in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    def until(self, reached: Callable[[], object], seconds: float = 120) -> None:
        """Wait until something is reached, while the command goes on."""
        end = time.monotonic() + seconds
        while not reached():
            assert self.process.poll() is None, self.printed
            assert time.monotonic() < end, self.printed
            time.sleep(0.05)

    def ended(self, seconds: float = 300) -> int:
        """Wait for its end, and return its code."""
        return self.process.wait(seconds)

    @property
    def printed(self) -> str:
        return self.log.read_text(encoding="utf-8")


@contextmanager
def started(project: Project, environ: Mapping[str, str], *command: str) -> Iterator[Started]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH), **environ}
    arguments, log = [sys.executable, "-m", "keval", *command], project.root / "log.txt"
    with (
        log.open("wb") as file,
        subprocess.Popen(arguments, cwd=project.root, env=environ, stdout=file, stderr=file) as process,
    ):
        try:
            yield Started(process, log)
        finally:
            process.kill()


def count(project: Project) -> int:
    """Trials on disk."""
    return sum(path.read_bytes().count(b"\n") for path in project.root.glob("results/*/*/trials.jsonl"))


def until(reached: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)


def only_run(project: Project) -> Run:
    (run,) = list_runs(project.root / "results")
    return run


def test_a_node_that_is_killed_again_and_again_costs_no_trial(project: Project) -> None:
    model, rng, names = Model(0.05), random.Random(5), ["1", "2"]
    journal = project.root / "journal.jsonl"
    with running_cluster() as cluster, listening(journal, "http") as url, gateway(model) as told:
        write(project, url, SAMPLES)
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        with started(project, environ, "run", "eval.yaml", "-q") as command:
            for kill in range(KILLS):
                command.until(partial(_grown, project, count(project)))
                time.sleep(rng.uniform(0, 0.5))
                cluster.command(f"kill {names.pop(rng.randrange(2))}")
                names.append(str(kill + 3))
                cluster.command(f"add {names[-1]}")
            assert 0 == command.ended(), command.printed

    run = only_run(project)
    ids = [trial.id for trial in run.trials_as_finished()]
    assert 2 * SAMPLES == len(ids) == len({*ids})
    assert 2 * SAMPLES == len([*run.scores()])
    assert all(trial.failure is None and not trial.attempts for trial in run.trials())
    lost = [worker for worker in run.manifest.workers if worker.lost]
    assert KILLS // 2 <= len(lost)
    # What was in flight on a node was asked again, and nothing else.
    needed = {name: 2 if "with_tally" in name else 1 for name in ids}
    assert {} == {name: model.asked[name] for name in ids if model.asked[name] < needed[name]}
    assert len([name for name in ids if model.asked[name] > needed[name]]) <= 6 * KILLS


@pytest.mark.parametrize("executor", ["ray", "local"])
def test_a_run_whose_driver_is_killed_goes_on_with_either_executor(
    project: Project, cluster: RunningCluster, executor: str
) -> None:
    with listening(project.root / "journal.jsonl", "http") as url, gateway(Model(0.05)) as told:
        write(project, url, 100)
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        with started(project, environ, "run", "eval.yaml", "-q") as command:
            command.until(lambda: count(project) > 40)
            command.process.kill()
        until(lambda: not _naming("ray::RayWorker"), 30)
        done = project.spawn("resume", "latest", "-q", "--executor", executor, env=environ)

    assert 0 == done.code, done.stderr
    run = only_run(project)
    ids = [trial.id for trial in run.trials_as_finished()]
    assert 200 == len(ids) == len({*ids})
    assert 200 == len([*run.scores()])


def test_ctrl_c_ends_everything_everywhere(project: Project, cluster: RunningCluster) -> None:
    model = Model(30)
    with listening(project.root / "journal.jsonl", "http") as url, gateway(model) as told:
        write(project, url, 20)
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        with started(project, environ, "run", "eval.yaml", "-q") as command:
            command.until(lambda: len(model.asked) == 6)
            began = time.monotonic()
            command.process.send_signal(signal.SIGINT)
            assert 130 == command.ended(60), command.printed

    assert "keval resume" in command.printed
    assert 15 > time.monotonic() - began  # 2 s for trials, and what closing takes
    until(lambda: not _naming("ray::RayWorker"), 10)


def test_a_local_ray_ends_with_a_driver_that_is_killed(project: Project) -> None:
    with listening(project.root / "journal.jsonl", "http") as url, gateway(Model(0.05)) as told:
        write(project, url, 100)
        project.write(eval_yaml=(project.root / "eval.yaml").read_text("utf-8").replace(", address: auto", ""))
        earlier = {*Path("/tmp").glob("keval-ray-*")}
        with started(project, told, "run", "eval.yaml", "-q") as command:
            command.until(lambda: count(project) > 10)
            (session,) = {*Path("/tmp").glob("keval-ray-*")} - earlier
            assert _naming(str(session))
            command.process.kill()

    until(lambda: not _naming(str(session)), 60)
    shutil.rmtree(session)


def _grown(project: Project, before: int) -> bool:
    return count(project) > before


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
