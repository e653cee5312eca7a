"""Claude Code itself takes a plugin: its skills, under their names, and its servers, which are behind the tap."""

from __future__ import annotations

import json
import sys

import pytest

from keval import open_run
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import Project, serve_here
from tests.plugins.skills.folders import skill, write
from tests.plugins.skills.test_served import serve
from tests.stdio_server import ENVIRONMENT, look_up

EVAL = """
    dataset: {path: questions.yaml}
    agents:
      claude-code: {model: simulated/any}
    contexts:
      office: {type: plugin, path: office}
      placebo: {from: office, text: scrambled}
    conditions:
      with_office: {contexts: [office]}
      with_placebo: {contexts: [placebo]}
    metrics: [testing/words]
"""


def respond(request: ChatRequest) -> ChatReply:
    """Read the skill, then ask the server, then answer."""
    looks = next((tool.name for tool in request.tools if tool.name.endswith("look_up")), "")
    done = {call.name for message in request.messages for call in message.calls}
    if "Skill" not in done:
        return ChatReply(calls=(ChatCall("Skill", {"skill": "office:pdf"}),))
    return ChatReply("It is filled.") if looks in done else ChatReply(calls=(ChatCall(looks, {"question": "?"}),))


def test_claude_code_reads_the_skill_of_a_plugin_and_keval_records_the_calls_of_its_server(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("keval_claude_code")
    serve_here(monkeypatch, respond)
    office = project.root / "office"
    skill(office / "skills", "pdf")
    write(office, **{".claude-plugin__plugin_json": '{"name": "office"}', "serve_py": look_up("42 fields")})
    server = {"command": sys.executable, "args": ["${CLAUDE_PLUGIN_ROOT}/serve.py"]}
    (office / ".mcp.json").write_text(json.dumps({"mcpServers": {"forms": server}}), encoding="utf-8")
    project.write(eval_yaml=EVAL, questions_yaml="- {id: a, question: Fill the form.}\n")

    outcome = project.run("eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    for trial in open_run(project.run_directory()).trials():
        assert trial.transcript is not None
        (text,) = trial.transcript.texts
        assert ("office:pdf", "plugin", True, 2, "Skill") == (
            text.name,
            text.way,
            text.read,
            text.model_call,
            text.by,
        )
        tapped = [(call.name, call.result) for call in trial.transcript.tool_calls if not call.own]
        assert [("look_up", "42 fields")] == tapped


SERVED = f"""
    dataset: {{path: questions.yaml}}
    agents:
      claude-code: {{model: simulated/any}}
      reader: {{type: claude-code, model: simulated/any, tools: [ListMcpResourcesTool, ReadMcpResourceTool]}}
    contexts:
      clerk:
        {{type: stdio, command: {sys.executable}, args: [-m, tests.plugins.skills.skilled, served], env: {ENVIRONMENT}}}
      clerk_skills: {{from: clerk, offer: skills}}
    conditions:
      with_server: {{contexts: [clerk]}}
      with_skills: {{contexts: [clerk_skills]}}
    metrics: [testing/words]
"""


def read(request: ChatRequest) -> ChatReply:
    """Read the skill, or else the note of the server."""
    asked = {
        "Skill": ChatCall("Skill", {"skill": "pdf"}),
        "ReadMcpResourceTool": ChatCall("ReadMcpResourceTool", {"server": "clerk", "uri": "note://clerk"}),
    }
    done = {call.name for message in request.messages for call in message.calls}
    calls = tuple(asked[tool.name] for tool in request.tools if tool.name in asked)
    return ChatReply("It is read.") if done else ChatReply("There is nothing.", calls)


def test_claude_code_reads_skills_that_a_server_serves_and_with_its_tool_resources(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("keval_claude_code")
    serve_here(monkeypatch, read)
    serve(project.root)
    project.write(eval_yaml=SERVED, questions_yaml="- {id: a, question: Who files the form?}\n")

    outcome = project.run("eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    trials = open_run(project.run_directory()).trials()
    texts = {(each.agent, each.condition): each.transcript.texts for each in trials if each.transcript}
    found = {key: [(each.name, each.way, each.by) for each in told if each.read] for key, told in texts.items()}
    assert [("pdf", ".claude/skills", "Skill")] == found["claude-code", "with_skills"]
    assert [("note://clerk", "resources/read", "ReadMcpResourceTool")] == found["reader", "with_server"]
