"""The example of coding agents: Codex, Gemini CLI and opencode, and a real documentation server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from keval.plugin import API_WIRES
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.coding_agents import RECIPES, installed
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway

EXAMPLE = Path(__file__).parents[2] / "examples" / "context-ab" / "coding-agents.yaml"


def test_the_examples_agents_are_the_recipes_of_the_documentation() -> None:
    agents: dict[str, dict[str, Any]] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["agents"]

    assert {"codex", "gemini", "opencode"} == agents.keys()
    assert agents == {name: {**RECIPES[name], "model": agents[name]["model"]} for name in agents}


@pytest.mark.slow
def test_coding_agents_answer_with_the_documentation_and_without_it(tmp_path: Path) -> None:
    told = use_of_tools(Project(tmp_path), EXAMPLE, "--limit", "3")

    assert {"codex", "gemini", "opencode"} == {agent for agent, _ in told}
    check(told, searches=3)


@pytest.mark.slow
def test_the_other_agents_over_the_protocol_answer_alike(tmp_path: Path) -> None:
    config: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    others = {name: {**RECIPES[name], "model": "simulated/docs"} for name in RECIPES if name not in config["agents"]}
    config["contexts"]["docs"]["cwd"] = str(EXAMPLE.parent)
    config |= {"agents": others, "dataset": {"path": str(EXAMPLE.with_name("questions.jsonl"))}}
    (tmp_path / "others.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    told = use_of_tools(Project(tmp_path), tmp_path / "others.yaml", "--limit", "1")

    assert {"codex-acp", "claude"} == {agent for agent, _ in told}
    check(told, searches=1)


@pytest.mark.slow
def test_a_recorded_run_of_programs_is_replayed_though_they_draw_ids_and_measure_times(tmp_path: Path) -> None:
    project, env = Project(tmp_path), {"PATH": installed(), "KEVAL_EXAMPLE_MODEL": None}

    recorded = project.run(EXAMPLE, "--limit", "1", "--record", env=env)
    replayed = project.run(EXAMPLE, "--limit", "1", "--replay", str(project.run_directory()), env=env)

    assert (0, 0) == (recorded.code, replayed.code), replayed.stderr


@pytest.mark.slow
def test_programs_ask_for_nothing_but_replies_of_the_models_in_their_recipes(tmp_path: Path) -> None:
    project, asked = Project(tmp_path), set[tuple[str, str]]()
    config = {
        "dataset": {"path": "questions.yaml"},
        "agents": {name: RECIPES[name] for name in RECIPES},
        "conditions": {"baseline": {"system_prompt": "Be brief."}},
        "metrics": ["basic/turns"],
    }
    questions = yaml.safe_dump([{"id": "q", "question": "What is a mutex? Say it in one sentence."}])
    project.write(eval_yaml=yaml.safe_dump(config), questions_yaml=questions)

    def respond(request: ChatRequest) -> ChatReply:
        asked.add((request.wire, request.model))
        return ChatReply("It is a lock that one thread holds at a time.")

    with gateway(respond) as environ:
        outcome = project.run("eval.yaml", env={"PATH": installed(), **environ})

    assert 0 == outcome.code, outcome.stderr
    trials = project.lines("trials.jsonl")
    assert len(RECIPES) == len(trials)
    assert [] == [trial["transcript"]["denied"] for trial in trials if "denied" in trial["transcript"]]
    models = {(API_WIRES[each.get("api", "chat")], each["model"].partition("/")[2]) for each in RECIPES.values()}
    assert models == asked


SLOW = f"""
import sys, time
sys.path.insert(0, {str(EXAMPLE.parents[2])!r})
time.sleep(2)
from tests.plugins.mcp.servers.conforming import server
server.run("stdio")
"""


@pytest.mark.slow
def test_programs_wait_for_a_server_that_comes_up_slowly(tmp_path: Path) -> None:
    project = Project(tmp_path)
    config = {
        "dataset": {"path": "questions.yaml"},
        "agents": {name: RECIPES[name] for name in RECIPES},
        "contexts": {"slow": {"type": "stdio", "command": "python", "args": ["-c", SLOW], "isolation": "trial"}},
        "conditions": {"slow": {"contexts": ["slow"]}},
        "metrics": ["basic/turns"],
    }
    project.write(eval_yaml=yaml.safe_dump(config), questions_yaml=yaml.safe_dump([{"id": "q", "question": "What?"}]))

    def respond(request: ChatRequest) -> ChatReply:
        tools = [tool.name for tool in request.tools if tool.name.endswith("test_simple_text")]
        called = any(message.role == "tool" for message in request.messages)
        return ChatReply("Done." if called else "", calls=() if called else tuple(map(ChatCall, tools)))

    with gateway(respond) as environ:
        outcome = project.run("eval.yaml", env={"PATH": installed(), **environ})

    assert 0 == outcome.code, outcome.stderr
    trials = project.lines("trials.jsonl")
    called = [(trial["agent"], call["name"]) for trial in trials for call in trial["transcript"]["tool_calls"]]
    assert [(name, "test_simple_text") for name in sorted(RECIPES)] == sorted(called)


def use_of_tools(project: Project, config: Path, *args: str) -> dict[tuple[str, str], Counter[str]]:
    """Run a config with the real programs, and count the calls of each tool by agent and condition."""
    outcome = project.run(config, *args, env={"PATH": installed(), "KEVAL_EXAMPLE_MODEL": None})
    assert 0 == outcome.code, outcome.stderr
    told: dict[tuple[str, str], Counter[str]] = {}
    for trial in project.lines("trials.jsonl"):
        transcript = trial["transcript"]
        assert ("tap", "proxy") == (transcript["tool_calls_by"], transcript["model_calls_by"])
        assert transcript["model_calls"] > 0
        assert transcript["usage"]["input_tokens"] > 0
        calls = told.setdefault((trial["agent"], trial["condition"]), Counter())
        calls.update(call["name"] for call in transcript["tool_calls"])
    return told


def check(told: dict[tuple[str, str], Counter[str]], searches: int) -> None:
    """Check that every agent searched for each question where it could, and called nothing else."""
    for (_, condition), calls in told.items():
        if condition == "with_docs":
            assert calls["search_docs"] >= searches
            assert calls.keys() <= {"search_docs", "read_page"}
        else:
            assert not calls
