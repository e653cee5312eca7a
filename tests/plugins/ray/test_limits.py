"""Limits hold for a run and not for each of its workers."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from keval.config.evaluation import Retry
from keval.errors import OutageError
from keval.plugin import Endpoint, RunLimits
from keval_gateway import ChatReply, ChatRequest, ModelFault
from keval_ray.limiter import Limiter, RemoteLimits
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.plugins.ray.conftest import RunningCluster

ENDPOINT = Endpoint("some", {"openai-chat": "http://127.0.0.1:9"}, "")


@attrs.frozen
class Called:
    """A handle of the limiter, as Ray's are called, in this process."""

    limiter: Limiter

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.limiter, name)
        return SimpleNamespace(remote=lambda *args, **named: asyncio.ensure_future(method(*args, **named)))


def workers(limiter: Limiter) -> tuple[RemoteLimits, RemoteLimits]:
    handle = Called(limiter)
    return RemoteLimits(handle, "worker-1", RunLimits()), RemoteLimits(handle, "worker-2", RunLimits())


def test_an_endpoint_that_refuses_is_given_so_many_requests_by_all_workers_together() -> None:
    async def admitted() -> tuple[float, int, int]:
        limiter = Limiter(RunLimits())
        one, two = (each.load(ENDPOINT) for each in workers(limiter))
        for load in (one, two) * 4:
            await load.admit()
        for load in (one, two) * 4:
            await load.leave("throttled", "a", "HTTP 429: slow down")
        waiting = [asyncio.create_task(load.admit()) for load in (one, two) * 4]
        await asyncio.sleep(0.05)
        begun = sum(task.done() for task in waiting)
        await one.leave("untold", "a")
        await asyncio.sleep(0.05)
        after = sum(task.done() for task in waiting)
        for task in waiting:
            task.cancel()
        return limiter._limits.load(ENDPOINT).limit, begun, after

    limit, begun, after = asyncio.run(admitted())

    assert 1 <= limit <= 4
    assert (limit, limit + 1) == (begun, after)


def test_a_lost_worker_keeps_no_place_and_no_request() -> None:
    async def held() -> list[bool]:
        limiter = Limiter(RunLimits())
        one, two = workers(limiter)
        places = [each.place("agent a", 1) for each in (one, two, one, two)]
        await places[0].__aenter__()
        waiting, later = (asyncio.create_task(place.__aenter__()) for place in places[1:3])
        await asyncio.sleep(0.01)
        before = waiting.done()
        await limiter.forget("worker-1")
        await asyncio.sleep(0.01)
        found = [before, waiting.done(), later.done()]
        await limiter.give("worker-2", "agent a", 1)
        await asyncio.sleep(0.01)
        # What the lost worker was still waiting for is given back at once.
        again = asyncio.create_task(places[3].__aenter__())
        await asyncio.wait_for(again, 1)
        return [*found, again.done()]

    assert [False, True, False, True] == asyncio.run(held())


def test_a_request_that_is_cancelled_while_it_waits_is_not_counted() -> None:
    async def left() -> bool:
        limiter = Limiter(RunLimits(Retry(max_outage_seconds=60)))
        one, two = (each.load(ENDPOINT) for each in workers(limiter))
        load = limiter._limits.load(ENDPOINT)
        load.limit = 1
        await one.admit()
        waiting = asyncio.create_task(two.admit())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.sleep(0.01)
        await one.leave("untold", "a")
        await asyncio.sleep(0.01)
        return await asyncio.wait_for(one.admit(), 1)

    assert asyncio.run(left()) is False


def test_an_endpoint_that_was_given_up_is_so_for_every_worker() -> None:
    async def asked() -> None:
        one, two = (each.load(ENDPOINT) for each in workers(Limiter(RunLimits(Retry(max_outage_seconds=0)))))
        for number in range(5):
            await one.admit()
            await one.leave("unreachable", str(number))
        await two.admit()

    with pytest.raises(OutageError, match="has never answered"):
        asyncio.run(asked())


def test_an_endpoint_that_refuses_within_a_stream_is_given_up_for_every_worker() -> None:
    async def asked() -> str:
        one, two = (each.load(ENDPOINT) for each in workers(Limiter(RunLimits())))
        why = await one.deny("no credit")
        with pytest.raises(OutageError) as raised:
            await two.admit()
        assert why == str(raised.value)
        return why

    assert asyncio.run(asked()).endswith("refuses to answer: no credit")


CONFIG = """
dataset: {path: questions.jsonl}
agents: {AGENT}
metrics: [basic/turns]
execution:
  max_concurrent: 12
  retry: {initial_backoff_seconds: 0, max_attempts: 1, max_request_attempts: 1, max_outage_seconds: 0.5}
  executor: {type: ray, address: auto, workers: 2}
"""
PROGRAM = """
import pathlib, sys, time

folder = pathlib.Path(sys.argv[1])
mine = folder / sys.argv[2]
mine.touch()
time.sleep(0.3)
print(len([*folder.iterdir()]))
mine.unlink()
"""


def written(project: Project, agent: dict[str, Any], count: int = 24) -> None:
    questions = "".join(json.dumps({"id": f"q{n}", "question": f"q{n}"}) + "\n" for n in range(count))
    project.write(eval_yaml=CONFIG.replace("{AGENT}", json.dumps(agent)), questions_jsonl=questions)


@pytest.mark.slow
def test_an_agent_has_so_many_processes_on_all_workers_together(project: Project, cluster: RunningCluster) -> None:
    (project.root / "running").mkdir()
    project.write(program_py=PROGRAM)
    command = [sys.executable, str(project.root / "program.py"), str(project.root / "running"), "{question}"]
    written(project, {"mine": {"type": "command", "command": command, "max_processes": 3}})

    outcome = project.spawn("run", "eval.yaml", "-q", env={**cluster.environ, "RAY_ADDRESS": cluster.address})

    assert 0 == outcome.code, outcome.stderr
    at_once = {int(trial["transcript"]["messages"][-1]["text"]) for trial in project.lines("trials.jsonl")}
    assert 3 == max(at_once)
    assert all(worker["trials"] for worker in project.read("manifest.json")["workers"])


@pytest.mark.slow
def test_a_model_that_is_down_ends_the_run_and_keeps_what_is_done(project: Project, cluster: RunningCluster) -> None:
    asked = []

    def respond(request: ChatRequest) -> ChatReply:
        asked.append(request)
        if len(asked) > 8:
            raise ModelFault(500, "out of order")
        return ChatReply("Fine.")

    written(project, {"openai": {"model": "openai/gpt-test"}}, 40)
    with gateway(respond) as told:
        environ = {**told, **cluster.environ, "RAY_ADDRESS": cluster.address}
        outcome = project.spawn("run", "eval.yaml", "-q", env=environ)

    assert (3, True) == (outcome.code, "has been down for 0.5 s" in outcome.stderr), outcome.stderr
    assert 8 <= len([*project.lines("trials.jsonl")]) < 40
