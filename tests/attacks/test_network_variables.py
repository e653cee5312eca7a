"""Variables for keys, proxies and certificates that are wrong: named before the first request, all at once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project

KEY = "sk-s3cretkey"
NOWHERE = "http://127.0.0.1:9"
OWN = {"authorization": "Bearer ${OPENAI_API_KEY}"}
ECHO = {"agents": {"a": {"type": "testing/echo"}}}
MCP = {"agents": {"a": {"type": "openai", "model": "simulated/m"}}, "conditions": {"with": {"contexts": ["c"]}}}
RUNS: dict[str, dict[str, Any]] = {
    "openai": {"agents": {"a": {"type": "openai", "model": "openai/m"}}},
    "anthropic": {"agents": {"a": {"type": "anthropic", "model": "anthropic/m"}}},
    "gadk": {"agents": {"a": {"type": "gadk", "model": "openai/m"}}},
    "gemini": {"agents": {"a": {"type": "gadk", "model": "google/m"}}},
    "ms": {"agents": {"a": {"type": "ms", "model": "openai/m"}}},
    "http": {"agents": {"a": {"type": "http", "url": NOWHERE, "headers": OWN}}},
    "judge": {**ECHO, "judges": {"j": {"type": "openai", "model": "openai/m"}}, "rubrics": ["completeness"]},
    "judge elsewhere": {
        **ECHO,
        "judges": {"j": {"type": "openai", "model": "m", "base_url": NOWHERE, "api_key": "${OPENAI_API_KEY}"}},
        "rubrics": ["completeness"],
    },
    "mcp": {**MCP, "contexts": {"c": {"type": "http", "url": NOWHERE, "headers": OWN}}},
    "mcp token": {**MCP, "contexts": {"c": {"type": "sse", "url": NOWHERE, "auth": {"token": "${OPENAI_API_KEY}"}}}},
}
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def run(project: Project, config: dict[str, Any], environ: dict[str, str]) -> tuple[int, str]:
    """Run an evaluation with one question; models are nowhere, and have a key that is right unless it is given."""
    project.write(
        q_jsonl='{"id": "a", "question": "Why?", "answer": "So."}\n',
        eval_yaml=json.dumps({"dataset": {"path": "q.jsonl"}, "metrics": ["basic/turns"], **config}),
    )
    unset: dict[str, str | None] = {name: None for each in PROXIES for name in (each, each.lower())}
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), KEY)
    urls = {"OPENAI_BASE_URL": f"{NOWHERE}/v1", "ANTHROPIC_BASE_URL": NOWHERE, "GOOGLE_GEMINI_BASE_URL": NOWHERE}
    outcome = project.keval("run", "eval.yaml", "-q", env={**unset, **keys, **urls, **environ})
    assert "s3cret" not in outcome.stdout + outcome.stderr
    return outcome.code, outcome.stderr


BLANKS = [(f"{KEY}\n", "ends with a newline"), (f" {KEY}", "begins with a space")]
"""Around the key of a provider they are left out; in an option they are an error."""
OTHERS = [
    (f"'{KEY}'", "has quotes around the key"),
    (KEY.replace("s3", "\u201cs3"), "has U+201C as its character 4"),
    (f"{KEY}\x1b[0m", "has U+001B as its character 13"),
    (" ", "is empty"),
]
OPTIONS = ("http", "judge elsewhere", "mcp", "mcp token")


@pytest.mark.parametrize(
    ("name", "key", "told"),
    [(name, *each) for name in RUNS for each in OTHERS] + [(name, *each) for name in OPTIONS for each in BLANKS],
)
def test_a_key_that_no_header_takes_is_named(project: Project, name: str, key: str, told: str) -> None:
    environ = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), key)

    code, said = run(project, RUNS[name], environ)

    assert 2 == code
    assert told in said


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_all_faults_of_proxies_and_certificates_are_named_at_once(project: Project, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.pem").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.pem")
    environ = {
        "SSL_CERT_FILE": str(tmp_path / "missing.pem"),
        "SSL_CERT_DIR": str(tmp_path / "empty.pem"),
        "REQUESTS_CA_BUNDLE": str(tmp_path / "empty.pem"),
        "NODE_EXTRA_CA_CERTS": str(tmp_path / "pipe.pem"),
        "https_proxy": "http://u:s3cret@",
        "ALL_PROXY": "proxy.example:port",
        "no_proxy": "[::1], ho st,example.org:port,.example.com,10.0.0.0/8",
    }

    code, said = run(project, RUNS[name], environ)

    assert 2 == code
    for told in (
        f"SSL_CERT_FILE names '{tmp_path}/missing.pem', which is not there; correct the variable, or unset it",
        f"SSL_CERT_DIR names '{tmp_path}/empty.pem', which is no folder",
        f"REQUESTS_CA_BUNDLE names '{tmp_path}/empty.pem', which holds no certificate in PEM",
        f"NODE_EXTRA_CA_CERTS names '{tmp_path}/pipe.pem', which is no file",
        "https_proxy must be the address of a proxy",
        "ALL_PROXY must be the address of a proxy",
        "no_proxy has 'ho st', which is no host",
        "no_proxy has 'example.org:port', which is no host",
    ):
        assert told in said
    assert "::1" not in said
    assert "example.com" not in said


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("gadk", "ms")]


@pytest.mark.parametrize("kind", ["openai", *SLOW])
def test_what_one_library_cannot_read_stops_no_run(project: Project, simulated_here: None, kind: str) -> None:
    environ = {"NO_PROXY": "[::1],[fe80::1]:80, example.com ", "ALL_PROXY": "socks5://127.0.0.1:9"}

    code, said = run(project, {"agents": {"a": {"type": kind, "model": "simulated/m"}}}, environ)

    assert (0, "") == (code, said)
