"""A server whose tools change while a trial runs, from the config to what the run keeps."""

from __future__ import annotations

import json
import sys

import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.stdio_server import ENVIRONMENT

AGENTS = {"openai": "openai/gpt-test", "gadk": "google/gemini-test"}


def unlocks(request: ChatRequest) -> ChatReply:
    """Unlock the door, enter as soon as there is a tool for it, and tell what came of that."""
    said = [message.text for message in request.messages if message.role == "tool"]
    if not said:
        return ChatReply(calls=(ChatCall("unlock"),))
    if len(said) == 1 and "enter" in [tool.name for tool in request.tools]:
        return ChatReply(calls=(ChatCall("enter"),))
    return ChatReply(said[-1])


def run(project: Project, agent: str, **options: str) -> int:
    """Run one question, and return the exit code."""
    server = {"type": "stdio", "command": sys.executable, "args": ["-m", "tests.plugins.mcp.servers.changing"]}
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {agent: {"model": AGENTS[agent]}},
        "contexts": {"door": {**server, "env": ENVIRONMENT, **options}},
        "conditions": {"door": {"contexts": ["door"]}},
        "metrics": ["basic/tokens"],
    }
    # ADK looks at the tools when a message of the user arrives.
    question = {"id": "q", "question": "Unlock the door.", "turns": ["What is inside?"]}
    project.write(eval_yaml=json.dumps(config), questions_jsonl=json.dumps(question))
    with gateway(unlocks) as environ:
        return project.keval("run", "eval.yaml", env=environ).code


@pytest.mark.parametrize("agent", ["openai", pytest.param("gadk", marks=pytest.mark.slow)])
def test_agent_follows_the_tools_and_the_run_keeps_each_list(project: Project, agent: str) -> None:
    code = run(project, agent, dynamic_tools="follow")

    (trial,) = project.lines("trials.jsonl")
    assert (0, None) == (code, trial["failure"])
    first, second = trial["transcript"]["tool_calls"]
    assert [("unlock", None), ("enter", "inside")] == [
        (first["name"], first["listing"]),
        (second["name"], second["result"]),
    ]
    assert ["enter", "unlock", "unlock_silently"] == trial["transcript"]["tools"]
    (kept,) = project.run_directory().glob(f"blobs/{second['listing']}*")
    assert ["unlock", "unlock_silently", "enter"] == [tool["name"] for tool in json.loads(kept.read_bytes())["tools"]]


def test_trial_fails_if_its_tools_change_and_the_config_says_nothing(project: Project) -> None:
    code = run(project, "openai")

    (trial,) = project.lines("trials.jsonl")
    assert (3, "mcp", "tools_changed") == (code, trial["failure"]["stage"], trial["failure"]["kind"])
    assert trial["failure"]["message"].startswith(
        "server 'door' has other tools than before the first trial: with enter; keep its tools as they are"
    )
    assert [] == trial["attempts"]
