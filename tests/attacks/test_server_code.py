"""A server that keval starts outside of a sandbox runs no code that the agent inside can change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

W = "{workspace}"


def validated(project: Project, server: dict[str, Any], sandbox: str = "bubblewrap") -> str:
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"mine": {"type": "command", "command": ["cat"], "env": {"SERVERS": "{mcp_config}"}}},
        "contexts": {"notes": {"type": "stdio", **server}},
        "conditions": {"with": {"contexts": ["notes"]}},
        "metrics": ["basic/turns"],
        "sandbox": sandbox,
    }
    project.write(q_jsonl='{"id": "a", "question": "first"}\n', eval_yaml=json.dumps(config, indent=1))
    return project.keval("validate", "eval.yaml").stderr


@pytest.mark.parametrize(
    "server",
    [
        {"command": "./server", "cwd": W},
        {"command": "bin/server", "cwd": f"{W}/tools"},
        {"command": "python", "args": ["server.py"], "cwd": W},
        {"command": "python3.12", "args": ["-u", "server"], "cwd": W},
        {"command": "/usr/bin/python3", "args": [f"{W}/server.py"]},
        {"command": "python", "args": ["-m", "server"], "cwd": W},
        {"command": "npx", "args": ["tsx", "src/server.ts"], "cwd": W},
        {"command": "env", "args": ["uv", "run", "server.py"], "cwd": W},
        {"command": "cat", "env": {"PATH": f"{W}/bin:/usr/bin"}},
        {"command": "python", "args": ["/opt/server.py"], "env": {"PYTHONPATH": W}},
    ],
    ids=json.dumps,
)
def test_a_server_whose_code_the_agent_could_change_is_refused(project: Project, server: dict[str, Any]) -> None:
    told = validated(project, server)

    assert "the agent in it could change the code that it runs" in told
    assert "eval.yaml:17:" in told
    assert "could change" not in validated(project, server, "none")
    assert "could change" not in validated(project, {**server, "tap": False})


@pytest.mark.parametrize(
    "server",
    [
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", W], "cwd": W},
        {"command": "python", "args": ["/opt/server.py", "--db", f"{W}/shop.db"], "cwd": W},
        {"command": "cat", "args": ["shop.db", "main.py"], "cwd": W},
        {"command": "python", "args": ["-m", "server", W]},
        {"command": "python", "args": ["-P", "-m", "server", W], "cwd": W},
    ],
    ids=json.dumps,
)
def test_a_server_that_has_only_its_data_there_is_not_refused(project: Project, server: dict[str, Any]) -> None:
    assert "could change" not in validated(project, server)
