"""Claude Code itself takes a plugin: its skills, under their names, and its servers, which are behind the tap."""

from __future__ import annotations

import json
import sys

import pytest

from keval import open_run
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import Project, serve_here
from tests.plugins.skills.folders import skill, write
from tests.stdio_server import look_up

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
