"""Replies that lead elsewhere: no other origin sees a request, and none of them is answered there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project
from tests.hostile_http import agent, hostile

AGENTS = ["openai", "anthropic", "http", pytest.param("gadk", marks=pytest.mark.slow)]


def run(project: Project, config: dict[str, Any], environ: dict[str, str]) -> tuple[int, str]:
    """Run an evaluation with one question, and return the exit code and the failures or what was said."""
    retry = {"max_attempts": 1, "max_request_attempts": 1, "max_outage_seconds": 1}
    execution = {"timeout_seconds": 20, "retry": retry}
    written = {"dataset": {"path": "q.jsonl"}, "metrics": ["basic/turns"], "execution": execution, **config}
    project.write(
        q_jsonl='{"id": "a", "question": "Why?", "answer": "So."}\n',
        eval_yaml=json.dumps(written),
    )
    outcome = project.keval("run", "eval.yaml", "-q", env=environ)
    files = [path for name in ("trials", "scores") for path in project.root.glob(f"results/*/*/{name}.jsonl")]
    return outcome.code, outcome.stderr + "".join(path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("status", [307, 308, 302])
def test_a_redirect_to_another_origin_is_refused(project: Project, kind: str, status: int) -> None:
    with hostile() as there, hostile() as here:
        here.location = there.url("body")
        asked, environ = agent(kind, here.url(f"redirect-{status}"))

        code, told = run(project, {"agents": {"a": asked}}, environ)

    assert (3, []) == (code, there.asked)
    assert f"redirects to '{there.url('body')}', which is not asked, as it would see the request" in told


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_judge_is_not_led_to_another_origin(project: Project, kind: str) -> None:
    with hostile() as there, hostile() as here:
        here.location = there.url("body")
        _, environ = agent(kind, here.url("redirect-307"))
        judge = {"type": kind, "model": f"{kind}/m"}
        config = {"agents": {"a": {"type": "testing/echo"}}, "judges": {"j": judge}, "rubrics": ["completeness"]}

        _, told = run(project, config, environ)

    assert (1, []) == (len(here.asked), there.asked)
    assert "which is not asked, as it would see the request" in told


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_an_mcp_server_is_not_looked_for_at_another_origin(project: Project, transport: str) -> None:
    with hostile() as there, hostile() as here:
        here.location = there.url("body")
        server = {"type": transport, "url": here.url("redirect-307"), "startup_timeout": 5}
        config = {
            "agents": {"a": {"type": "testing/echo"}},
            "contexts": {"c": server},
            "conditions": {"with": {"contexts": ["c"]}},
        }

        code, told = run(project, config, {})

    assert (2, []) == (code, there.asked)
    assert f"redirects to '{there.url('body')}', which is not asked" in told


@pytest.mark.parametrize(
    ("location", "status", "told"),
    [
        ("/redirect-302/on", 302, "with status 302, at which POST becomes GET and loses its body"),
        ("/redirect-303/on", 303, "with status 303, at which POST becomes GET and loses its body"),
        ("/redirect-307/on", 307, "redirects more than 5 times"),
        ("https://127.0.0.1/", 307, "redirects to 'https://127.0.0.1/', which is not asked"),
        ("http://u:p@127.0.0.1/", 307, "redirects to 'http://127.0.0.1/', which is not asked"),
        ("file:///etc/passwd", 307, "redirects to 'file:///etc/passwd', which is not asked"),
        ("http://[", 307, "redirects to 'http://[', which is no address"),
    ],
)
@pytest.mark.parametrize("kind", ["openai", "http"])
def test_a_redirect_that_cannot_be_followed_is_explained(
    project: Project, kind: str, location: str, status: int, told: str
) -> None:
    with hostile() as here:
        here.location = location
        asked, environ = agent(kind, here.url(f"redirect-{status}"))

        code, found = run(project, {"agents": {"a": asked}}, environ)

    assert 3 == code
    assert told in found
