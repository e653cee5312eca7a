"""The provider classes: what constructing one costs and refuses."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from keval_mcp import Http, Sse, Stdio
from keval_testing import check_context


def test_constructing_a_provider_imports_no_sdk() -> None:
    code = (
        "import sys; from keval_mcp import Http, Sse, Stdio; Stdio(command='x'); Http(url='http://x'); Sse(url='http://x');"
        "print({'mcp', 'mcp_types', 'uvicorn', 'starlette', 'anyio', 'httpx2'} & set(sys.modules))"
    )

    assert "set()\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["http", "sse"])
def test_providers_keep_the_rules_of_contexts(request: pytest.FixtureRequest, name: str) -> None:
    check_context(name, options={"url": request.getfixturevalue(f"lasting_{name}")})


@pytest.mark.parametrize("option", ["timeout", "startup_timeout"])
def test_time_that_is_none_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match=f"'{option}' must be > 0"):
        Http(url="http://x", **{option: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("provider", [Http, Sse])
def test_url_without_a_protocol_is_refused(provider: Any) -> None:
    with pytest.raises(ValueError, match="the url of a server is http://… or https://…; got 'localhost:80/mcp'"):
        provider(url="localhost:80/mcp")


@pytest.mark.parametrize(
    ("provider", "place"), [(Stdio, {"command": "x"}), (Http, {"url": "http://x"}), (Sse, {"url": "http://x"})]
)
def test_instructions_cannot_be_hidden_from_agents_that_connect_themselves(provider: Any, place: Any) -> None:
    with pytest.raises(ValueError, match=r"'server_instructions' must go with the tap, .*; leave out tap: false"):
        provider(**place, tap=False, server_instructions=False)


def test_secrets_are_not_shown() -> None:
    shown = repr([Stdio(command="x", env={"KEY": "s3cret"}), Http(url="http://x", headers={"authorization": "s3cret"})])

    assert "s3cret" not in shown
