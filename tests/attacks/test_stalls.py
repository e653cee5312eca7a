"""What never returns: it is told with its place, a second Ctrl-C ends keval, and a thread keeps no command alive."""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

import keval
from keval.cli import watchdog
from keval.cli.watchdog import HEARTBEAT, STANDSTILL, Watchdog
from keval_report.terminal.progress import Progress
from tests.conftest import Project

RUN = Path(__file__).parents[1] / "runs" / "0.1.0" / "20261122-063743-c6a2"
KINDS = ("spin", "fifo", "c", "lock", "later", "blocks", "thread", "exit")
ATTACK = """
import asyncio, atexit, hashlib, os, sys, threading, time
import attrs
from keval import Score

def begun():
    sys.__stderr__.write("FOREVER\\n")
    sys.__stderr__.flush()

def spin():
    begun()
    while True:  # as a retry that catches everything
        try:
            time.monotonic()
        except BaseException:
            pass

def fifo():
    os.mkfifo("pipe")
    begun()
    open("pipe").read()

def c():
    begun()
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1)

def lock():
    held = threading.Lock()
    held.acquire()
    begun()
    held.acquire()

async def later():
    begun()
    await asyncio.to_thread(time.sleep, 10**6)

def blocks():
    begun()
    time.sleep(10**6)

def thread():
    threading.Thread(target=time.sleep, args=(10**6,)).start()
    begun()

def exit():
    atexit.register(time.sleep, 10**6)
    thread()

def made(kind):
    @attrs.frozen
    class Metric:
        blocks = kind == "blocks"
        if kind == "later":
            async def score(self, trial):
                await later()
        else:
            def score(self, trial):
                globals()[kind]()
                return Score(1.0)
    return Metric

@attrs.frozen
class Agent:
    async def prepare(self):
        spin()

    async def run(self, sample, context):
        raise NotImplementedError

Spin, Fifo, C, Lock, Later, Blocks, Thread, Exit = map(made, "spin fifo c lock later blocks thread exit".split())
"""


@pytest.fixture
def attacked(project: Project) -> Project:
    """A project with a plugin of metrics that never return, and of an agent that never comes up."""
    folder = project.root / "attack-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: attack\nVersion: 1\n", encoding="utf-8")
    metrics = "".join(f"attack/{kind} = attack:{kind.capitalize()}\n" for kind in KINDS)
    entries = f"[keval.metrics]\n{metrics}[keval.agents]\nattack = attack:Agent\n"
    (folder / "entry_points.txt").write_text(entries, encoding="utf-8")
    project.write(attack_py=ATTACK, q_jsonl='{"id": "q1", "question": "capital?", "answer": "Paris"}\n')
    return project


@contextmanager
def running(project: Project, command: str, *, agent: str = "openai: {model: simulated/echo}", metric: str) -> Iterator[
    subprocess.Popen[str]
]:  # fmt: skip
    times = "execution: {timeout_seconds: 2, grace_seconds: 1}"
    project.write(eval_yaml=f"dataset: {{path: q.jsonl}}\nagents: {{{agent}}}\nmetrics: [{metric}]\n{times}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "keval", *command.split(), "eval.yaml"],
        cwd=project.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def told_until(process: subprocess.Popen[str], mark: str) -> None:
    assert process.stderr is not None
    assert any(mark in line for line in process.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spin", "fifo", "c", "lock", "later", "blocks"])
def test_a_second_ctrl_c_ends_keval_whatever_a_metric_does(attacked: Project, kind: str) -> None:
    with running(attacked, "run", metric=f"attack/{kind}") as process:
        told_until(process, "FOREVER")
        process.send_signal(signal.SIGINT)
        if kind in ("spin", "fifo", "c", "lock"):
            told_until(process, "press Ctrl-C again")
        process.send_signal(signal.SIGTERM)  # two of one kind that come at once are one
        _, stderr = process.communicate(timeout=30)

    assert 130 == process.returncode, stderr
    assert "interrupted; finished trials are in" in stderr
    assert 1 == len(attacked.lines("trials.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "play --no-browser"])
def test_a_second_ctrl_c_ends_keval_while_it_is_brought_up(attacked: Project, command: str) -> None:
    with running(attacked, command, agent="attack: {}", metric="basic/turns") as process:
        told_until(process, "FOREVER")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)

    assert 130 == process.returncode


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "code"), [("later", 3), ("blocks", 3), ("thread", 0), ("exit", 0)])
def test_a_thread_that_never_returns_keeps_no_command_alive(attacked: Project, kind: str, code: int) -> None:
    with running(attacked, "run", metric=f"attack/{kind}") as process:
        _, stderr = process.communicate(timeout=60)

    assert code == process.returncode, stderr
    assert "results/eval/" in stderr
    assert 1 == len(attacked.lines("scores.jsonl"))


def watching(monkeypatch: pytest.MonkeyPatch, *times: float, tasks: int = 2) -> tuple[list[str], list[float], Watchdog]:
    """Let a watchdog look at a loop that stands still at these times, and return what it tells, and when it beats."""
    told: list[str] = []
    beats: list[float] = []
    clock = [0.0]
    monkeypatch.setattr(watchdog, "aside", lambda call: call() or threading.Thread())
    monkeypatch.setattr(watchdog, "tell", told.append)
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **__: None)
    dog = Watchdog(frozenset(), lambda: None, lambda still: None, lambda: beats.append(clock[0]), lambda: clock[0])
    loop = asyncio.new_event_loop()
    waiting = [loop.create_task(asyncio.sleep(0)) for _ in range(tasks)]
    try:
        for clock[0] in times:
            dog.look(loop, clock[0])
    finally:
        loop.run_until_complete(asyncio.wait(waiting))
        loop.close()
    return told, beats, dog


def test_a_standstill_is_told_once_and_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    told, _, _ = watching(monkeypatch, *range(round(3 * STANDSTILL)))

    (warning,) = told
    assert f"has stood still for {STANDSTILL:g} s at {__file__}:" in warning
    assert " in watching" in warning


def test_nobody_misses_a_loop_that_one_task_has_alone_or_that_stands_still_for_an_import(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone, _, _ = watching(monkeypatch, *range(round(3 * STANDSTILL)), tasks=1)
    too_long, _, _ = watching(monkeypatch, *range(round(7 * STANDSTILL)), tasks=1)
    (tmp_path / "slow_import.py").write_text("import watching_slow\nwatching_slow.watch()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    imported: list[str] = []
    slow = ModuleType("watching_slow")
    slow.watch = lambda: imported.extend(  # type: ignore[attr-defined]
        watching(monkeypatch, *range(round(3 * STANDSTILL)))[0]
    )
    monkeypatch.setitem(sys.modules, "watching_slow", slow)
    importlib.import_module("slow_import")
    monkeypatch.delitem(sys.modules, "slow_import")

    assert [] == alone == imported
    (warning,) = too_long
    assert f"has stood still for {6 * STANDSTILL:g} s at" in warning


def test_a_process_that_was_stopped_did_not_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    told, _, _ = watching(monkeypatch, 1, 2, 2 + 50 * STANDSTILL, 3 + 50 * STANDSTILL)

    assert [] == told


def test_a_silent_command_says_at_least_every_minute_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    _, beats, _ = watching(monkeypatch, *range(1000))

    assert 60 >= HEARTBEAT
    assert all(later - earlier <= 60 for earlier, later in zip([0.0, *beats], [*beats, 1000.0], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["run", "eval.yaml"], "trials done, 0 failed"),
        (["score", "latest"], "still at work: "),
        (["resume", "latest"], "still at work: "),
        (["validate", "--live", "eval.yaml"], "still at work"),
        (["run", "eval.yaml", "--log-format", "json"], '"event": "heartbeat", "trials": 1, "finished"'),
    ],
    ids=" ".join,
)
def test_every_command_that_may_take_long_has_a_heartbeat(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: list[str], said: str
) -> None:
    config = "dataset: {path: q.jsonl}\nagents: {openai: {model: simulated/echo}}\nmetrics: [basic/turns]\n"
    project.write(eval_yaml=config, q_jsonl='{"id": "q1", "question": "capital?", "answer": "Paris"}\n')
    if command[0] in ("score", "resume"):
        assert 0 == project.keval("run", "eval.yaml").code
    monkeypatch.setattr(watchdog, "HEARTBEAT", 0.0)

    outcome = project.keval(*command)
    quiet = project.keval("run", "eval.yaml", "-q")

    assert said in outcome.stderr
    assert "still at work" not in quiet.stderr


def test_a_heartbeat_says_what_is_waited_for_and_how_long(capsys: pytest.CaptureFixture[str]) -> None:
    clock = [0.0]
    run = keval.open_run(RUN)
    progress = Progress(Console(file=io.StringIO()), trials=3, clock=lambda: clock[0])

    progress.beat()
    progress.keval_run_started(Path("results"), run.manifest)
    progress.keval_trial_finished(next(run.trials()))
    clock[0] = 40.0
    progress.beat()
    progress.keval_endpoint_changed("gpt", None, down=False, trouble="gpt at https://api.example:443: slow")
    clock[0] = 80.0
    progress.beat()
    progress.keval_endpoint_changed("gpt", None, down=False, trouble=None)
    progress.keval_trial_finished(next(run.trials()))
    progress.beat()

    assert [
        "still at work: bringing up what the run needs",
        "still at work: 1 of 3 trials done, 0 failed, 0 scored; waiting 40 s for the next trial",
        "note: gpt at https://api.example:443: slow",
        "still at work: 1 of 3 trials done, 0 failed, 0 scored; waiting 40 s, as gpt at https://api.example:443: slow",
        "still at work: 2 of 3 trials done, 0 failed, 0 scored",
    ] == capsys.readouterr().err.splitlines()
