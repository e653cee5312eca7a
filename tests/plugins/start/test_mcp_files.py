"""`keval init --from`: the servers of Claude Code, VS Code and Cursor, as their documentation shows these files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from keval_start.servers import read_servers
from keval_start.variables import Variables
from keval_start.workplace import Workplace
from tests.conftest import Project
from tests.stdio_server import look_up

CLAUDE_CODE = """
{
  "mcpServers": {
    "airtable": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "airtable-mcp-server"],
      "env": {"AIRTABLE_API_KEY": "${AIRTABLE_KEY}", "CACHE_DIR": "${CACHE_DIR:-/tmp}", "LOG_LEVEL": "debug"}
    },
    "api-server": {
      "type": "http",
      "url": "${API_BASE_URL:-https://api.example.com}/mcp",
      "headers": {"Authorization": "Bearer ${API_KEY}"}
    },
    "asana": {"type": "sse", "url": "https://mcp.asana.com/sse"},
    "stripe": {"type": "http", "url": "https://mcp.stripe.com", "headers": {"X-Team": "blue", "Accept": "*/*"}}
  }
}
"""
VS_CODE = """
{
  // What the user is asked for.
  "inputs": [
    {"type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true},
  ],
  "servers": {
    "Perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask"],
      "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"}
    },
    "fetch": {"command": "uvx", "args": ["mcp-server-fetch"], "cwd": "${workspaceFolder}/web", "dev": {"watch": "*"}},
    "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp/"}, /* the last one */
  }
}
"""
CURSOR = """
{
  "mcpServers": {
    "server-name": {
      "command": "python",
      "args": ["${workspaceFolder}/mcp-server.py", "--home", "${userHome}"],
      "env": {"API_KEY": "${env:MY_KEY}"}
    },
    "remote": {"url": "http://localhost:3000/mcp", "headers": {"API_KEY": "a-value"}},
    "old": {"url": "http://localhost:3000/sse", "disabled": true}
  }
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path: Path, text: str) -> tuple[dict[str, dict[str, Any]], Variables]:
    """The options of the servers in a file by label, and the variables that they need."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    variables = Variables()
    servers = read_servers(path, Workplace.of(Path("evaluation")), variables)
    return {server.label: dict(server.options) for server in servers}, variables


def test_the_file_of_claude_code(here: Path) -> None:
    servers, variables = read(here / ".mcp.json", CLAUDE_CODE)

    assert {
        "airtable": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "airtable-mcp-server"],
            "env": {"AIRTABLE_API_KEY": "${AIRTABLE_KEY}", "CACHE_DIR": "${CACHE_DIR:-/tmp}", "LOG_LEVEL": "debug"},
            "cwd": "..",
        },
        "api-server": {
            "type": "http",
            "url": "${API_BASE_URL:-https://api.example.com}/mcp",
            "headers": {"Authorization": "Bearer ${API_KEY}"},
        },
        "asana": {"type": "sse", "url": "https://mcp.asana.com/sse"},
        "stripe": {
            "type": "http",
            "url": "https://mcp.stripe.com",
            "headers": {"X-Team": "${STRIPE_X_TEAM}", "Accept": "*/*"},
        },
    } == servers
    assert {"AIRTABLE_KEY": None, "API_KEY": None, "STRIPE_X_TEAM": "blue"} == variables.values


def test_the_settings_of_claude_code_have_servers_of_the_user_and_of_projects(here: Path) -> None:
    settings = {
        "numStartups": 3,
        "mcpServers": {"notes": {"command": "notes"}, "docs": {"command": "all-docs"}},
        "projects": {
            str(here): {"mcpServers": {"docs": {"command": "my-docs"}}, "allowedTools": []},
            "/elsewhere": {"mcpServers": {"other": {"command": "other"}}},
        },
    }

    servers, _ = read(here / ".claude.json", json.dumps(settings))

    assert {"notes": "notes", "docs": "my-docs"} == {label: each["command"] for label, each in servers.items()}


def test_the_file_of_vs_code(here: Path) -> None:
    servers, variables = read(here / ".vscode" / "mcp.json", VS_CODE)

    assert {
        "Perplexity": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "server-perplexity-ask"],
            "env": {"PERPLEXITY_API_KEY": "${PERPLEXITY_KEY}"},
            "cwd": "..",
        },
        "fetch": {"type": "stdio", "command": "uvx", "args": ["mcp-server-fetch"], "cwd": "../web"},
        "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp/"},
    } == servers
    assert {"PERPLEXITY_KEY": None} == variables.values


def test_the_file_of_cursor(here: Path) -> None:
    servers, variables = read(here / ".cursor" / "mcp.json", CURSOR)

    assert {
        "server-name": {
            "type": "stdio",
            "command": "python",
            "args": ["./mcp-server.py", "--home", "${HOME}"],
            "env": {"API_KEY": "${MY_KEY}"},
            "cwd": "..",
        },
        "remote": {
            "type": "http",
            "url": "http://localhost:3000/mcp",
            "headers": {"API_KEY": "${REMOTE_API_KEY}"},
        },
    } == servers
    assert {"MY_KEY": None, "REMOTE_API_KEY": "a-value"} == variables.values


SECRET = "s3cr3tValue0123456789"
PLACES = {
    "env": ({"command": "x", "env": {"PATH_TO_DB": SECRET}}, "${PATH_TO_DB}"),
    "short": ({"command": "x", "env": {"DB_PASSWORD": "1234"}}, "${DB_PASSWORD}"),
    "default": ({"command": "x", "env": {"KEY": f"${{ACME_KEY:-{SECRET}}}"}}, "KEY: ${ACME_KEY}"),
    "header": ({"url": "https://h", "headers": {"Authorization": f"Bearer {SECRET}"}}, "Bearer ${IT_AUTHORIZATION}"),
    "query": ({"url": f"https://h/mcp?api_key={SECRET}&debug=true"}, "?api_key=${IT_API_KEY}&debug=true"),
    "path": ({"url": f"https://h/s/{SECRET}/mcp"}, "https://h/s/${IT_PATH}/mcp"),
    "user": ({"url": f"https://me:{SECRET}@h/mcp"}, "https://me:${IT_PASSWORD}@h/mcp"),
    "option": ({"command": "x", "args": ["--api-key", SECRET]}, "${API_KEY}"),
    "joined": ({"command": "x", "args": [f"--token={SECRET}"]}, "--token=${TOKEN}"),
    "docker": ({"command": "docker", "args": ["run", "-e", f"DB_PASS={SECRET}"]}, "DB_PASS=${DB_PASS}"),
    "remote": ({"command": "x", "args": ["--header", f"Authorization: Bearer {SECRET}"]}, "Authorization: Bearer ${"),
    "database": (
        {"command": "x", "args": [f"postgres://me:{SECRET}@h:5432/db"]},
        "postgres://me:${IT_PASSWORD}@h:5432/db",
    ),
    "alone": ({"command": "x", "args": [SECRET]}, "${IT_SECRET}"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_becomes_a_variable_wherever_it_stands(here: Path, place: str) -> None:
    entry, instead = PLACES[place]

    servers, variables = read(here / "mcp.json", json.dumps({"mcpServers": {"it": entry}}))

    text = yaml.safe_dump(servers, width=1000)
    assert (True, False) == (instead in text, SECRET in text or "1234" in text), text
    assert [{"short": "1234"}.get(place, SECRET)] == list(variables.known.values())


def test_equal_names_of_different_secrets_get_different_variables(here: Path) -> None:
    entries = {name: {"command": "x", "env": {"API_KEY": f"{name}-key"}} for name in ("a", "b")}

    servers, variables = read(here / "mcp.json", json.dumps({"mcpServers": entries}))

    assert {"API_KEY": "a-key", "B_API_KEY": "b-key"} == variables.values
    assert "${B_API_KEY}" == servers["b"]["env"]["API_KEY"]


def test_secrets_of_one_server_under_one_name_get_different_variables(here: Path) -> None:
    secrets = [f"{SECRET}{each}" for each in "abc"]
    entry = {"command": "x", "args": [f"--token={secret}" for secret in secrets]}

    servers, variables = read(here / "mcp.json", json.dumps({"mcpServers": {"1st": entry}}))

    names = ["TOKEN", "_1ST__TOKEN", "_1ST__TOKEN_2"]
    assert dict(zip(names, secrets, strict=True)) == variables.values
    assert [f"--token=${{{name}}}" for name in names] == servers["1st"]["args"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "it cannot be read as JSON"),
        ('{"tools": {}}', "it has no servers under `mcpServers` (Claude Code, Cursor) or `servers` (VS Code)"),
        ('{"mcpServers": {"a": []}}', "the servers a are no objects with a command or a URL"),
        ('{"mcpServers": {"a": {}}}', "the server 'a' has neither `command` nor `url`"),
        (
            '{"mcpServers": {"a": {"type": "ws", "url": "ws://h"}}}',
            "the server 'a' is of type 'ws'; keval connects",
        ),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "`args` of the server 'a' is no list of texts"),
        ('{"mcpServers": {"a": {"command": "x", "env": ["y"]}}}', "`env` of the server 'a' is no object"),
        (
            '{"servers": {"a": {"command": "${command:pick}"}}}',
            "has ${command:pick}, which only",
        ),
        ('{"servers": {"a": {"command": "x"}}}', "--from mcp.json: it has no server 'b'; servers: a"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(project: Project, text: str, told: str) -> None:
    project.write(mcp_json=text)

    outcome = project.keval("init", "--from", "mcp.json", "--only", "b" if "'b'" in told else "a")

    assert 2 == outcome.code
    assert told in outcome.stderr
    assert ["mcp.json"] == [path.name for path in project.root.iterdir()]


@pytest.mark.usefixtures("simulated_here")
def test_servers_of_a_file_are_started_with_its_secrets_and_run_with_exported_ones(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TARN_TOKEN", raising=False)
    needy = f"import os\nassert os.environ['TARN_TOKEN'] == {SECRET!r}, 'no token'\n" + look_up("Port 7443.")
    entries = {
        "tarn": {"command": "python", "args": ["needy.py"], "env": {"TARN_TOKEN": SECRET}},
        "dead": {"command": "no-such-program"},
        "off": {"command": "no-such-program", "disabled": True},
        "noted": {"command": "python", "args": ["server.py"], "timeout": 5},
        "unset": {"command": "python", "env": {"TOKEN": "${NO_SUCH_VARIABLE}"}},
    }
    project.write(mcp_json=json.dumps({"mcpServers": entries}), needy_py=needy, server_py=look_up("Port 7443."))

    outcome = project.keval("init", "--from", "mcp.json", "--only", "tarn", "--only", "noted")
    unset = project.keval("run", "eval.yaml")
    ran = project.keval("run", "eval.yaml", env={"TARN_TOKEN": SECRET})

    assert 0 == outcome.code, outcome.stderr
    assert "note: the value of TARN_TOKEN was not copied into the config; export TARN_TOKEN=…" in outcome.stderr
    assert "note: noted: `timeout` was left out" in outcome.stderr
    written = [path for path in project.root.rglob("*") if path.is_file() and path.name not in ("mcp.json", "needy.py")]
    assert [] == [path for path in written if SECRET in path.read_text(encoding="utf-8", errors="replace")]
    assert (2, True) == (unset.code, "TARN_TOKEN is not set" in unset.stderr)
    assert 0 == ran.code, ran.stderr
    assert ["baseline", "with_tarn", "with_noted"] == list(
        yaml.safe_load((project.root / "eval.yaml").read_text(encoding="utf-8"))["conditions"]
    )


def test_a_variable_that_is_not_set_is_named_before_a_server_is_started(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TARN_TOKEN", raising=False)
    project.write(mcp_json=json.dumps({"servers": {"a": {"command": "a", "env": {"T": "${env:TARN_TOKEN}"}}}}))

    outcome = project.keval("init", "--from", "mcp.json")

    assert 2 == outcome.code
    assert "error: ${TARN_TOKEN}: set in the environment what servers are started with: export TARN_TOKEN=…\n" == (
        outcome.stderr
    )
