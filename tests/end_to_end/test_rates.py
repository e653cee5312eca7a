"""Rates and places of a whole run, through the command line."""

from __future__ import annotations

import json
import sys
import time

import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.stdio_server import ENVIRONMENT

SERVER = """
import time
from pathlib import Path

from tests.stdio_server import Tool, serve, text


def look(arguments, meta):
    mine = Path("running") / arguments["where"]
    mine.touch()
    time.sleep(0.1)
    at_once = len([*Path("running").iterdir()])
    mine.unlink()
    return text(str(at_once))


serve("crowded", lambda: {"look": Tool(look, {"where": {"type": "string"}})})
"""


@pytest.mark.slow
def test_agents_and_judges_together_send_no_more_than_the_rate_of_their_provider(project: Project) -> None:
    asked: list[float] = []

    def respond(request: ChatRequest) -> ChatReply:
        asked.append(time.monotonic())
        return ChatReply("Fine.")

    project.write(
        eval_yaml="""
        dataset: {path: questions.jsonl}
        agents: {one: {type: openai, model: openai/a}, two: {type: gadk, model: openai/b, api: chat}}
        metrics: [basic/turns]
        execution: {rates: {openai: {requests_per_minute: 600}}}
        """,
        questions_jsonl="".join(json.dumps({"id": f"q{n}", "question": f"q{n}"}) + "\n" for n in range(40)),
    )
    with gateway(respond) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert 0 == outcome.code, outcome.stderr
    assert 80 == len(asked)
    # 60 may be sent at once, and the others ten a second.
    assert 1.5 <= max(asked) - min(asked)
    seconds = [trial["transcript"]["duration"] for trial in project.lines("trials.jsonl")]
    assert 1.0 > sorted(seconds)[len(seconds) // 2]


@pytest.mark.slow
def test_a_server_is_used_by_so_many_trials_at_once(project: Project) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply(request.messages[-1].text)
        return ChatReply(calls=(ChatCall("look", {"where": request.messages[0].text}),))

    (project.root / "running").mkdir()
    server = {"type": "stdio", "command": sys.executable, "args": ["server.py"], "cwd": ".", "env": ENVIRONMENT}
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {"openai": {"model": "openai/a"}},
        "contexts": {"crowded": {**server, "max_clients": 2}},
        "conditions": {"bare": {"contexts": ["crowded"]}},
        "metrics": ["basic/turns"],
    }
    project.write(
        eval_yaml=json.dumps(config),
        server_py=SERVER,
        questions_jsonl="".join(json.dumps({"id": f"q{n}", "question": f"q{n}"}) + "\n" for n in range(12)),
    )
    with gateway(respond) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert 0 == outcome.code, outcome.stderr
    at_once = {int(trial["transcript"]["messages"][-1]["text"]) for trial in project.lines("trials.jsonl")}
    assert {1, 2} >= at_once
    assert 2 in at_once
