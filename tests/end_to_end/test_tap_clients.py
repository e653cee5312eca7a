"""Codex, Gemini CLI and Claude Code as clients of `keval tap`: their models get what they get without it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest, wire_urls
from keval_gateway.app import build_app
from tests.coding_agents import installed
from tests.conformance import npm_server
from tests.end_to_end.servers.model import served
from tests.tapping import tapped

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OWN = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.plugins.mcp.servers.conforming import server; "
CALLS: dict[str, dict[str, Any]] = {
    "everything": {
        "get_sum": {"a": 2, "b": 40},
        "get_structured_content": {"location": "Chicago"},
        "get_tiny_image": {},
        "get_roots_list": {},  # of clients with roots
        "trigger_elicitation_request": {},  # of clients with forms
        "trigger_long_running_operation": {"duration": 1, "steps": 4},
    },
    "own": {
        "test_simple_text": {},
        "test_error_handling": {},
        "test_tool_with_progress": {},
        "test_tool_with_logging": {},
        "test_multiple_content_types": {},
        "client_capabilities": {},
    },
}
"""Tools of each server with their arguments, called one after the other, as far as a client offers them."""


def codex(home: Path, server: dict[str, Any], base: str) -> tuple[Sequence[str], dict[str, str]]:
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in server.items())
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        f"""
        model = "gpt-5.1-codex"
        model_provider = "keval"
        check_for_update_on_startup = false
        web_search = "disabled"
        analytics.enabled = false
        mcp_servers.it = {{{table}, required = true}}
        [model_providers.keval]
        name = "keval"
        base_url = "{wire_urls(base)["openai-responses"]}"
        env_key = "KEVAL_KEY"
        """,
        encoding="utf-8",
    )
    options = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return ("codex", "exec", *options, "What?"), {"KEVAL_KEY": "key-of-nobody"}


def gemini(home: Path, server: dict[str, Any], base: str) -> tuple[Sequence[str], dict[str, str]]:
    named = {"httpUrl": server["url"]} if "url" in server else server
    settings = {
        "general": {"enableAutoUpdate": False, "maxAttempts": 1},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "mcpServers": {"it": named},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return ("gemini", "--model", "gemini-2.5-pro", "--yolo", "-p", "What?"), {
        "GEMINI_API_KEY": "key-of-nobody",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GOOGLE_GEMINI_BASE_URL": wire_urls(base)["gemini"],
    }


def claude(home: Path, server: dict[str, Any], base: str) -> tuple[Sequence[str], dict[str, str]]:
    (program,) = Path(os.environ["KEVAL_AGENTS"]).glob("node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude")
    named = {"type": "http", **server} if "url" in server else server
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"it": named}}), encoding="utf-8")
    options = (
        "--mcp-config",
        str(home / "mcp.json"),
        "--strict-mcp-config",
        "--tools",
        "",
        "--allowedTools",
        "mcp__it",
    )
    return (str(program), "-p", "What?", *options), {
        "ANTHROPIC_BASE_URL": wire_urls(base)["anthropic"],
        "ANTHROPIC_API_KEY": "key-of-nobody",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
    }


CLIENTS = {each.__name__: each for each in (codex, gemini, claude)}


def asked(folder: Path, client: str, server: dict[str, Any], calls: dict[str, Any]) -> Any:
    """Return what the model of a client was offered and told in its last request, without what differs by itself."""
    requests: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatReply:
        offered = {re.sub(r"\W", "_", tool.name).removeprefix("mcp_").strip("_"): tool.name for tool in request.tools}
        wanted = [(name, given) for called, given in calls.items() for key, name in offered.items()
                  if key.endswith(f"_{called}")]  # fmt: skip
        if not wanted:  # for a title, say
            return ChatReply("Done.")
        requests.append(request)
        done = sum(message.role == "tool" for message in request.messages)
        return ChatReply(calls=(ChatCall(*wanted[done]),)) if done < len(wanted) else ChatReply("Done.")

    home, work = folder / "home", folder / "home" / "work"
    work.mkdir(parents=True)
    with served(build_app(respond)) as base:
        command, environ = CLIENTS[client](home, server, base)
        env = {"HOME": str(home), "PATH": installed(), **environ}
        done = subprocess.run(command, cwd=work, env=env, input="", capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    last = requests[-1]
    said = [[message.role, message.text, message.error, message.media] for message in last.messages]
    own = [[tool.name, tool.description, tool.parameters] for tool in last.tools if re.match("mcp__?it_", tool.name)]
    told = json.dumps([own, said]).replace(r",\"experimental\"", "")  # Codex declares that over stdio alone
    return json.loads(re.sub(r"Wall time: [\d.]+|\b[\d.]+ ?seconds|source: [^]]+", "…", told.replace(str(folder), "…")))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_coding_agent_is_told_through_the_tap_what_it_is_told_directly(
    tmp_path: Path, client: str, name: str
) -> None:
    installed()
    every = (*npm_server("server-everything"), "stdio") if name == "everything" else ()
    command = every or (sys.executable, "-c", f"{OWN}server.run('stdio')")
    for each in ("direct", "tapped"):
        (tmp_path / each).mkdir()

    direct = asked(tmp_path / "direct", client, {"command": command[0], "args": [*command[1:]]}, CALLS[name])
    server = json.dumps({"type": "stdio", "command": command[0], "args": [*command[1:]]})
    with tapped(tmp_path, server) as url:
        through = asked(tmp_path / "tapped", client, {"url": url}, CALLS[name])

    assert direct == through
    assert len([role for role, *_ in through[1] if role == "tool"]) >= len(CALLS[name]) - 2
