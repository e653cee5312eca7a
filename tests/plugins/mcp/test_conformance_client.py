"""keval as a client, by the official conformance suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance import run_suite
from tests.stdio_server import ENVIRONMENT

PASSING = {
    "initialize": "mcp-client-initialization",
    "tools_call": "tool-add-numbers",
    "sse-retry": "client-sse-retry-timing",
    "elicitation-sep1034-client-defaults": "client-elicitation-sep1034-string-default",
    "auth/client-credentials-basic": "client-credentials-basic-auth",
    "auth/client-credentials-jwt": "client-credentials-jwt-verified",
}
"""The scenarios that keval passes, each with the check that it is about."""


@pytest.mark.slow
@pytest.mark.parametrize("scenario", PASSING)
def test_keval_conforms_as_a_client(scenario: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m tests.plugins.mcp.conformance_client"

    outcome = run_suite(tmp_path, "client", "--command", command, "--scenario", scenario, environ=ENVIRONMENT)

    assert 0 == outcome.code, outcome.printed
    assert {"SUCCESS"} == {*outcome.checks.values()}, outcome.printed
    assert PASSING[scenario] in outcome.checks
