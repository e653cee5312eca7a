"""A running run tells those who look at it what it is doing; while nobody looks, it makes no live event."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from keval import open_run
from keval.store.run import list_runs
from keval_analysis.live_state import ErrorCount, LiveState, read_live, watch
from tests.conftest import Project

T = TypeVar("T")

CONFIG = """
dataset: {path: questions.jsonl}
agents: {patient: {type: double/patient, path: ., token: "${TOKEN:-}"}}
metrics: [double/length]
execution: {retry: {max_attempts: 2, initial_backoff_seconds: 0}}
"""


@pytest.fixture
def patient(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr("keval_analysis.live_state._EVERY", 0.01)
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "What is it?"}\n')
    return project


def until(told: Callable[[], T | None]) -> T:
    """Ask again and again until there is an answer."""
    deadline = time.monotonic() + 20
    while (found := told()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found


def test_who_looks_at_a_run_sees_what_its_trials_do(patient: Project) -> None:
    def state(wanted: Callable[[LiveState], bool]) -> LiveState | None:
        """Return what the run says of itself, once somebody looks."""
        runs = list_runs(Path("results"))
        told = read_live(runs[0]) if runs and watch(runs[0]) else None
        return told if told is not None and wanted(told) else None

    def look() -> tuple[LiveState, LiveState]:
        at_first = until(lambda: state(lambda told: bool(told.in_flight)))
        Path("begin").touch()
        calling = until(lambda: state(lambda told: told.in_flight[0].doing == "tool_called"))
        Path("end").touch()
        return at_first, calling

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        outcome = patient.keval("run", "eval.yaml", env={"TOKEN": "token-of-mine"})
        at_first, calling = looking.result()

    run = open_run("latest")
    ((before,), (now,)) = at_first.in_flight, calling.in_flight
    assert (0, "trials", 0, 0) == (outcome.code, calling.stage, calling.finished, calling.scored)
    # It had begun before anybody looked, so nothing was heard of it.
    assert ("patient/baseline/a/1", None, None, None) == (before.trial, before.attempt, before.doing, before.tool)
    assert ("patient", "baseline", "a", 1) == (now.agent, now.condition, now.sample, now.repetition)
    assert (2, "tool_called", "look", before.since) == (now.attempt, now.doing, now.tool, now.since)
    assert (ErrorCount("HTTP 429", 1, "slow down, [secret]"),) == calling.refusals
    assert (ErrorCount("model: rate_limit", 1, "too many requests for [secret]"),) == calling.retries
    assert [] == [name for name in ("live.json", ".watched") if (run.path / name).exists()]


def test_what_a_run_that_was_killed_left_is_tidied_up(patient: Project) -> None:
    for name in ("begin", "end"):
        (patient.root / name).touch()
    patient.keval("run", "eval.yaml")
    run = open_run("latest")
    for name in ("live.json", ".watched"):
        (run.path / name).touch()

    is_running = watch(run)

    assert (False, None) == (is_running, read_live(run))
    assert not (run.path / ".watched").exists()


def test_a_run_stops_telling_when_nobody_looks_any_more(patient: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_analysis.live_state._LOOKING", 0.1)

    def look() -> None:
        """Look until the run tells something, and no more; its trials wait until its files are gone."""
        run = until(lambda: next(iter(list_runs(Path("results"))), None))
        until(lambda: read_live(run) if watch(run) else None)
        files = [run.path / "live.json", run.path / ".watched"]
        until(lambda: None if any(file.exists() for file in files) else True)
        for name in ("begin", "end"):
            Path(name).touch()

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        outcome = patient.keval("run", "eval.yaml")

    assert (0, None) == (outcome.code, looking.result())


def test_no_event_is_made_while_nobody_looks(patient: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    for module in ("keval.execute.trial.trial_attempt", "keval.score.backlog"):
        monkeypatch.setattr(f"{module}.LiveEvent", lambda *event: made.append(event))
    for name in ("begin", "end"):
        (patient.root / name).touch()

    outcome = patient.keval("run", "eval.yaml")

    assert (0, []) == (outcome.code, made), outcome.stderr
    assert not (patient.run_directory() / "live.json").exists()
