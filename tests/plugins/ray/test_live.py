"""Whoever looks at a run on a cluster sees what its trials and its workers do just now."""

from __future__ import annotations

import json

import pytest

from keval.store.run import list_runs
from keval_analysis.live_state import LiveState, read_live, watch
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.end_to_end.test_resume import Model
from tests.end_to_end.test_tool_calls import listening
from tests.plugins.ray.conftest import RunningCluster
from tests.plugins.ray.test_faults import started, write

pytestmark = pytest.mark.slow


def test_a_run_on_a_cluster_tells_of_its_trials_and_workers(project: Project, cluster: RunningCluster) -> None:
    states: list[LiveState] = []

    def look() -> bool:
        runs = list_runs(project.root / "results")
        told = read_live(runs[0]) if runs and watch(runs[0]) else None
        if told is not None:
            states.append(told)
        # Events of models and tools come from the workers.
        doing = {trial.doing for trial in told.in_flight} if told is not None else set()
        return bool(doing & {"model_called", "model_asked", "tool_called", "tool_returned", "trial_started"})

    with listening(project.root / "journal.jsonl", "http") as url, gateway(Model(0.5)) as told:
        write(project, url, 60)
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        with started(project, environ, "run", "eval.yaml", "-q", "--log-format", "json") as command:
            command.until(look)
            command.until(lambda: look() and sum(worker.trials for worker in states[-1].workers) > 5)
            assert 0 == command.ended(), command.printed

    assert {"worker-1", "worker-2"} >= {worker.name for worker in states[-1].workers}
    events = [json.loads(line) for line in command.printed.splitlines() if line.startswith("{")]
    told_of = [event for event in events if event["event"] == "worker_changed"]
    assert {"worker-1", "worker-2"} == {event["name"] for event in told_of}
    assert all(event["lost"] is None for event in told_of)
    assert 120 == sum({event["name"]: event["trials"] for event in told_of}.values())
