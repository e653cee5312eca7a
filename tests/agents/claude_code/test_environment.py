"""What of the user's environment reaches a trial, and what of a trial reaches a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from keval_gateway import ChatCall, ChatReply

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

NOWHERE = "http://127.0.0.1:9"

ELSEWHERE = {
    "ANTHROPIC_BASE_URL": NOWHERE,
    "ANTHROPIC_AUTH_TOKEN": "theirs",
    "ANTHROPIC_CUSTOM_HEADERS": "x-theirs: yes",
    "ANTHROPIC_MODEL": "claude-theirs",
    "ANTHROPIC_VERTEX_PROJECT_ID": "theirs",
    "AWS_BEARER_TOKEN_BEDROCK": "theirs",
    "CLAUDE_CODE_EXTRA_BODY": '{"temperature": 0.5}',
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "CLAUDE_CODE_USE_VERTEX": "1",
    "CLOUD_ML_REGION": "us-east5",
    "HTTP_PROXY": NOWHERE,
    "http_proxy": NOWHERE,
}
"""What a user of Claude Code may have set, each of which would change where or what a trial asks."""


def test_a_trial_asks_the_endpoint_it_is_handed_whatever_the_user_has_set(
    play: Any, toolbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    script = [ChatReply(calls=(ChatCall("mcp__toolbox__add", {"a": 1, "b": 1}),)), ChatReply("Two.")]

    outcome = play(script, toolbox.server())

    assert "Two." == outcome.transcript.output
    request = outcome.requests[0]
    theirs = [name for name in ("authorization", "x-theirs") if name in request.headers]
    assert ("claude-sonnet-5-5", [], None) == (request.model, theirs, request.raw.get("temperature"))


def test_the_users_settings_and_memory_do_not_reach_the_model(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = tmp_path / ".claude"
    claude.mkdir()
    (claude / "CLAUDE.md").write_text("Always answer in rhyme.", encoding="utf-8")
    (claude / "settings.json").write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": NOWHERE}}), encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude))
    before = sorted(claude.rglob("*"))

    outcome = play([ChatReply("Fine.")])

    assert "Fine." == outcome.transcript.output
    assert "rhyme" not in json.dumps(outcome.requests[0].raw)
    assert before == sorted(claude.rglob("*"))


def test_a_stdio_server_gets_its_directory_and_its_environment_and_no_more(
    play: Any, stdio: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORT", "not for servers")
    script = [ChatReply(calls=(ChatCall("mcp__toolbox__where_am_i", {}),)), ChatReply("There.")]

    outcome = play(script, stdio(cwd=str(tmp_path), env={"KEVAL_TRIAL": "t1", "TERM": "mine"}))

    (call,) = outcome.transcript.tool_calls
    assert call.result is not None
    seen = json.loads(json.loads(call.result)["result"])
    # What the server's own Python adds.
    seen["environment"].pop("LC_CTYPE", None)
    inherited = {name: os.environ[name] for name in ("HOME", "LOGNAME", "PATH", "SHELL", "USER") if name in os.environ}
    expected = {"directory": str(tmp_path), "environment": {**inherited, "KEVAL_TRIAL": "t1", "TERM": "mine"}}
    assert expected == seen
    assert "where am i" == call.name


def test_a_stdio_server_without_a_directory_runs_where_keval_does(play: Any, stdio: Any) -> None:
    script = [ChatReply(calls=(ChatCall("mcp__toolbox__where_am_i", {}),)), ChatReply("There.")]

    outcome = play(script, stdio())

    assert json.dumps(str(Path.cwd())) in json.loads(outcome.transcript.tool_calls[0].result)["result"]
