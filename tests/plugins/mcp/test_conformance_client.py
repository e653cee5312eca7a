"""keval as a client, by the official conformance suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance import ALPHA, run_suite
from tests.stdio_server import ENVIRONMENT

PASSING = {
    "initialize": "mcp-client-initialization",
    "tools_call": "tool-add-numbers",
    "sse-retry": "client-sse-retry-timing",
    "elicitation-sep1034-client-defaults": "client-elicitation-sep1034-string-default",
    "auth/client-credentials-basic": "client-credentials-basic-auth",
    "auth/client-credentials-jwt": "client-credentials-jwt-verified",
    "auth/2025-03-26-oauth-endpoint-fallback": "token-request",
    "auth/offline-access-scope": "token-request",
    "auth/resource-mismatch": "resource-mismatch-rejected",
}
"""Scenarios, each with the check that it is about."""


AUTH = 14
"""How many scenarios of `auth/` are about the login of a person."""


@pytest.mark.slow
def test_keval_conforms_in_every_login_of_a_person(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tests.plugins.mcp.conformance_client"

    outcome = run_suite(tmp_path, "client", "--command", command, "--suite", "auth", environ=ENVIRONMENT)

    assert (0, AUTH) == (outcome.code, outcome.printed.count("✓ auth/")), outcome.printed
    assert ({"SUCCESS"}, True) == ({*outcome.checks.values()}, "token-request" in outcome.checks), outcome.printed


@pytest.mark.slow
@pytest.mark.parametrize("scenario", PASSING)
def test_keval_conforms_as_a_client(scenario: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m tests.plugins.mcp.conformance_client"

    outcome = run_suite(tmp_path, "client", "--command", command, "--scenario", scenario, environ=ENVIRONMENT)

    assert 0 == outcome.code, outcome.printed
    assert {"SUCCESS"} == {*outcome.checks.values()}, outcome.printed
    assert PASSING[scenario] in outcome.checks


# The suite would run all at once, in which some take too long.
OF_2026_07_28 = (
    *("tools_call", "request-metadata", "sep-2322-client-request-state", "json-schema-ref-no-deref"),
    *("http-standard-headers", "http-custom-headers", "http-invalid-tool-headers", "json-schema-2020-12-preservation"),
    *("auth/authorization-server-migration", "auth/metadata-issuer-mismatch", "auth/iss-supported"),
    *("auth/iss-not-advertised", "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected"),
    *("auth/iss-normalized", "auth/resource-mismatch", "auth/scope-step-up"),
)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["digest", "frontmatter", "size"])
def test_skills_that_are_not_as_listed_are_not_used(what: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m tests.plugins.mcp.conformance_client"
    args = ("client", "--command", command, "--scenario", f"sep-2640-client-verify-{what}")

    outcome = run_suite(tmp_path, *args, environ=ENVIRONMENT, package=ALPHA)

    assert ["SUCCESS"] == [*outcome.checks.values()], outcome.printed


@pytest.mark.slow
@pytest.mark.parametrize("scenario", OF_2026_07_28)
def test_keval_conforms_as_a_client_of_2026_07_28(scenario: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m tests.plugins.mcp.conformance_client"
    args = ("client", "--command", command, "--spec-version", "2026-07-28", "--scenario", scenario)

    outcome = run_suite(tmp_path, *args, "--timeout", "120000", environ=ENVIRONMENT, package=ALPHA)

    assert 0 == outcome.code, outcome.printed
    assert {*outcome.checks.values()} <= {"SUCCESS", "SKIPPED"}, outcome.printed
