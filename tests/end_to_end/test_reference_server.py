"""The reference server of MCP, from npm, which nobody of keval wrote: what it gives reaches agents, and is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conformance import npm_server
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway

pytestmark = pytest.mark.slow

CALLS = [
    ChatCall("get-tiny-image"),
    ChatCall("get-structured-content", {"location": "Chicago"}),
    ChatCall("get-resource-links", {"count": 2}),
    ChatCall("get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
    ChatCall("trigger-long-running-operation", {"duration": 6, "steps": 24}),
    ChatCall("get-sum", {"a": 2, "b": 40}),
]
RENAMED = ChatCall("add", {"a": 2, "b": 40})


def script(request: ChatRequest) -> ChatReply:
    if any(message.role == "tool" for message in request.messages):
        return ChatReply("Done.")
    offered = {tool.name for tool in request.tools}
    return ChatReply(calls=tuple(CALLS if "get-tiny-image" in offered else [RENAMED]))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of both frameworks and the plain agent with the whole server, and with three of its tools changed."""
    command = npm_server("server-everything")
    project = Project(tmp_path_factory.mktemp("reference"))
    contexts = {
        "every": {"type": "stdio", "command": command[0], "args": [*command[1:], "stdio"], "timeout": 4},
        "no_tasks": {"from": "every", "without": ["simulate-research-query"]},
        "few": {
            "from": "every",
            "tools": ["get-sum", "echo", "get-tiny-*"],
            "without": ["get-tiny-image"],
            "rename": {"get-sum": "add"},
            "describe": {"get-sum": "Adds."},
            "server_instructions": False,
        },
    }
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {
            "plain": {"type": "openai", "model": "openai/gpt-test", "api": "responses"},
            "gadk": {"model": "google/gemini-test"},
            "ms": {"model": "openai/gpt-test"},
        },
        "contexts": contexts,
        "conditions": {name: {"contexts": [name]} for name in ("every", "no_tasks", "few")},
        "metrics": ["basic/latency"],
    }
    project.write(questions_jsonl='{"id": "q", "question": "What?"}\n', eval_yaml=json.dumps(config))
    with gateway(script) as environ:
        outcome = project.run("eval.yaml", env=environ)
    assert outcome.code == 3, outcome.stderr  # Agent Framework does not take a tool of the whole server
    return project


def trials(run: Project, condition: str) -> dict[str, Any]:
    return {line["agent"]: line["transcript"] for line in run.lines("trials.jsonl") if line["condition"] == condition}


def requested(run: Project, transcript: Any) -> str:
    return Path(run.run_directory(), "blobs", transcript["request"]).read_text(encoding="utf-8")


def test_every_kind_of_content_is_recorded_alike_for_every_agent(run: Project) -> None:
    kinds = {
        agent: [sorted(content["kind"] for content in call["content"]) for call in transcript["tool_calls"]]
        for agent, transcript in trials(run, "no_tasks").items()
    }

    # The structured result is repeated in the text.
    expected = [["image"], [], ["resource_link", "resource_link"], ["resource"], [], []]
    assert dict.fromkeys(("plain", "gadk", "ms"), expected) == kinds


def test_a_tool_reports_no_progress_to_agents_that_ask_for_none_and_has_its_timeout(run: Project) -> None:
    long = [transcript["tool_calls"][4] for transcript in trials(run, "no_tasks").values()]

    assert ["tool_timeout"] * 3 == [call["error_kind"] for call in long]
    assert max(call["duration"] for call in long) < 5


def test_the_servers_instructions_reach_every_model_unless_they_are_hidden(run: Project) -> None:
    told = {
        agent: "Server instructions are working" in requested(run, transcript)
        for agent, transcript in trials(run, "no_tasks").items()
    }
    hidden = {
        agent: "Server instructions are working" in requested(run, transcript)
        for agent, transcript in trials(run, "few").items()
    }

    assert dict.fromkeys(("plain", "gadk", "ms"), True) == told
    assert dict.fromkeys(("plain", "gadk", "ms"), False) == hidden


def test_changed_tools_are_offered_and_the_server_gets_its_own_names(run: Project) -> None:
    for transcript in trials(run, "few").values():
        (call,) = transcript["tool_calls"]
        assert ["add", "echo"] == transcript["tools"]
        assert ("add", "get-sum", 1) == (call["name"], call["tool"], call["executions"])
        assert "42" in call["result"]
        assert "Adds." in requested(run, transcript)


def test_a_tool_that_a_framework_leaves_out_fails_its_trial_with_the_remedy(run: Project) -> None:
    failures = {line["agent"]: line["failure"] for line in run.lines("trials.jsonl") if line["condition"] == "every"}

    assert (None, None, "tools_missing") == (failures["plain"], failures["gadk"], failures["ms"]["kind"])
    assert "give the context `without: [simulate-research-query]`" in failures["ms"]["message"]


def test_the_manifest_says_that_trials_have_the_server_to_themselves(run: Project) -> None:
    conditions = run.read("manifest.json")["conditions"]

    servers = [conditions[name]["servers"]["every"] for name in ("every", "few")]
    assert [False, False] == [server["shared"] for server in servers]
    assert "not read-only" in servers[0]["sharing"]
    assert "the input schema has no example for `message` of echo" in servers[1]["sharing"]
