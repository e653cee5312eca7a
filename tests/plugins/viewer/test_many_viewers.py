"""Many people look at one evaluation while it runs, and each sees all of it."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from keval.plugin import list_runs
from keval_viewer.app import Serving
from tests import viewing
from tests.conftest import Project

VIEWERS = 20
CONFIG = """
dataset: {path: questions.jsonl}
agents: {patient: {type: double/patient, path: .}}
contexts: {notes: {text: "Read. "}}
conditions: {baseline: {}, with_notes: {contexts: [notes]}}
metrics: [double/length]
execution: {retry: {max_attempts: 2, initial_backoff_seconds: 0}}
"""


def read(running: Serving, path: str, begun: threading.Barrier) -> dict[str, str]:
    """Read the events of a run's page to their end; returns the parts of the page as they are then."""
    parts: dict[str, str] = {}
    with viewing.client_of(running) as client, client.stream("GET", path) as events:
        kind = ""
        for line in events.iter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data" and kind == "part":
                if not parts:
                    begun.wait(60)
                told = json.loads(value)
                parts[told["name"]] = told["html"]
            elif name == "data" and kind == "ended":
                return parts
    raise EOFError("the events ended before the run")


@pytest.mark.slow  # each viewer is a connection and a thread
def test_twenty_viewers_see_a_run_to_its_end(project: Project) -> None:
    questions = [{"id": str(number), "question": "What is it?"} for number in range(12)]
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(each) + "\n" for each in questions))
    results = project.root / "results"
    results.mkdir()

    def begin() -> None:
        for sign in ("begin", "end"):
            (project.root / sign).touch()

    def look(running: Serving) -> list[dict[str, str]]:
        """Look at the run when it has begun; its trials wait until everybody looks."""
        deadline = time.monotonic() + 60
        while not any(run.is_locked for run in list_runs(results)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (run,) = list_runs(results)
        begun = threading.Barrier(VIEWERS, begin)
        path = f"/runs/{run.path.parent.name}/{run.id}/events"
        with ThreadPoolExecutor(VIEWERS) as viewers:
            return [*viewers.map(lambda _: read(running, path, begun), range(VIEWERS))]

    with viewing.served(results) as running, ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look, running)
        outcome = project.keval("run", "eval.yaml")
        seen = looking.result(60)

    assert 0 == outcome.code
    assert [seen[0]] * VIEWERS == seen
    assert "24" in seen[0]["progress"]
    assert [] == [*project.run_directory().glob("*live*"), *project.run_directory().glob(".watched")]
