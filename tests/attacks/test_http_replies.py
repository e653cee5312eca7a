"""Replies over HTTP that are too much: each is bounded in memory and in time, whoever asks."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ON_PATH, Project
from tests.hostile_http import agent, hostile

ROOT = Path(__file__).parents[2]
CONFIG = {"dataset": {"path": "q.jsonl"}, "metrics": ["basic/turns"]}
READERS = {
    "plugins/clients/src/keval_clients/http.py",  # the one that bounds replies
    "plugins/clients/src/keval_clients/client.py",  # an SDK's form of what it read
    "plugins/clients/src/keval_clients/transport.py",
    "plugins/providers/src/keval_providers/github.py",  # the tokens of a cloud, from its own endpoint
    "plugins/providers/src/keval_providers/google.py",
    "agents/http/src/keval_http/caller.py",  # names its timeouts
    "plugins/mcp/src/keval_mcp/server/bodies.py",  # bounds the SDK's own
    "plugins/mcp/src/keval_mcp/server/transports.py",
    "plugins/mcp/src/keval_mcp/server/login.py",
    # They talk to keval itself on loopback, behind its proxy and its tap.
    *(f"agents/gadk/src/keval_gadk/{name}.py" for name in ("anthropic_client", "gemini_client", "toolset")),
    *(f"agents/ms/src/keval_ms/{name}.py" for name in ("conversation", "tools")),
    "plugins/start/src/keval_start/ci/api.py",  # the API of the host that runs the job
}


def write(project: Project, kind: str, url: str, seconds: float = 20.0, most: str = "20 MB") -> dict[str, str]:
    """Write an evaluation with one question for one agent, and return its environment."""
    asked, environ = agent(kind, url)
    retry = {"max_attempts": 1, "max_request_attempts": 1, "max_outage_seconds": 1}
    execution = {"timeout_seconds": seconds, "max_reply_bytes": most, "retry": retry}
    project.write(
        q_jsonl='{"id": "a", "question": "Why?"}\n',
        eval_yaml=json.dumps({**CONFIG, "agents": {"a": asked}, "execution": execution}),
    )
    return environ


def failure(project: Project) -> dict[str, Any]:
    (trial,) = project.lines("trials.jsonl")
    found: dict[str, Any] = trial["failure"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http", "openai", "anthropic"])
@pytest.mark.parametrize(
    ("way", "kinds"),
    [
        ("body", {"reply_too_large"}),
        ("chunk", {"reply_too_large"}),
        ("line", {"reply_too_large"}),
        ("comments", {"reply_too_large"}),
        ("gzip", {"reply_too_large"}),
        ("gzip-events", {"reply_too_large"}),
        ("gzip-refusal", {"reply_too_large"}),
        ("gzip-gzip", {"connection"}),
        ("deflate-nothing", {"reply_too_large"}),
        ("headers", {"connection"}),
        ("header", {"connection"}),
        ("trailers", {"connection"}),
    ],
)
def test_what_does_not_end_is_read_as_far_as_it_may_reach(
    project: Project, kind: str, way: str, kinds: set[str]
) -> None:
    with hostile() as scene:
        environ = write(project, kind, scene.url(way), most="1 MB")

        outcome = project.keval("run", "eval.yaml", "-q", env=environ)

    assert 3 == outcome.code
    assert failure(project)["kind"] in kinds
    assert scene.sent < 40_000_000  # what the sockets hold on the way, and a compressed bomb


@pytest.mark.parametrize("kind", ["http", "openai"])
@pytest.mark.parametrize("way", ["drip", "drip-events", "interim", "extension"])
@pytest.mark.slow
def test_what_comes_for_ever_ends_with_the_trials_time(project: Project, kind: str, way: str) -> None:
    with hostile() as scene:
        environ = write(project, kind, scene.url(way), seconds=1.0)

        outcome = project.keval("run", "eval.yaml", "-q", env=environ)

    assert (3, "timeout") == (outcome.code, failure(project)["kind"])


MEASURING = """
import resource, subprocess, sys
ended = subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL, check=False)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(ended.returncode)
"""
"""Tells the memory of a command. Of a process of the tests' own, it would be no less than what the tests take."""


@pytest.mark.parametrize(
    ("kind", "way"),
    [(kind, way) for kind in ("http", "openai") for way in ("gzip", "gzip-events", "line")] + [("gadk", "gzip")],
)
@pytest.mark.slow
def test_a_bomb_takes_little_memory(project: Project, kind: str, way: str) -> None:
    with hostile() as scene:
        environ = write(project, kind, scene.url(way))
        environ = {**os.environ, **environ, "PYTHONPATH": os.pathsep.join(ON_PATH)}
        command = [sys.executable, "-c", MEASURING, sys.executable, "-m", "keval", "run", "eval.yaml", "-q"]
        done = subprocess.run(command, cwd=project.root, env=environ, capture_output=True, text=True, check=False)

    assert 3 == done.returncode
    assert int(done.stdout) < 400_000  # in KB, of which gadk's imports take half; the bomb has 10 GB


def test_nobody_else_reads_http() -> None:
    libraries = {"aiohttp", "httpx", "httpx2", "requests", "urllib3", "urllib.request", "http.client"}
    found = {
        str(path.relative_to(ROOT))
        for folder in ("core", "plugins", "agents", "judges", "metrics")
        for path in (ROOT / folder).rglob("*.py")
        if ".venv" not in path.parts and "tests" not in path.parts
        if any(library in (text := path.read_text(encoding="utf-8")) for library in libraries)
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Import) and libraries & {alias.name for alias in node.names})
        or (isinstance(node, ast.ImportFrom) and node.module in libraries and not _reads_variables(node))
    }

    assert READERS == found


def _reads_variables(node: ast.ImportFrom) -> bool:
    return {alias.name for alias in node.names} <= {"getproxies", "proxy_bypass", "url2pathname"}
