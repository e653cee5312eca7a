"""What stands behind the tap, by the official conformance suite: the tap changes nothing of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import ALPHA, run_suite
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT
from tests.tapping import tapped


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Yield the URL of the server of these tests, or of the one in the folder `KEVAL_CONFORMANCE_SERVER`.

    That has the package `mcp_everything_server`, the reference server of the suite.
    """
    folder = os.environ.get("KEVAL_CONFORMANCE_SERVER")
    if folder is None:
        one = Listening.start("tests.plugins.mcp.servers.conforming")
        yield f"http://127.0.0.1:{one.port}/mcp"
        one.stop()
        return
    command = [sys.executable, "-m", "mcp_everything_server", "--port", "3901"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "running" not in process.stderr.readline():
            assert process.poll() is None
        threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would stop it
        yield "http://127.0.0.1:3901/mcp"
        process.kill()


@pytest.mark.slow
def test_the_suite_finds_through_the_tap_what_it_finds_directly(tmp_path: Path) -> None:
    with served() as url:
        direct = run_suite(tmp_path / "direct", "server", "--url", url)
        with tapped(tmp_path, f'{{type: http, url: "{url}"}}') as address:
            through = run_suite(tmp_path / "through", "server", "--url", address)

    assert direct.checks == through.checks
    assert {"SUCCESS"} == {*through.checks.values()}, through.printed
    assert len(through.checks) > 30


@pytest.mark.slow
def test_a_server_over_stdio_passes_the_suite_through_the_tap(tmp_path: Path) -> None:
    scenarios = (
        "tools-call-with-progress",
        "tools-call-sampling",
        "elicitation-sep1034-defaults",
        "resources-subscribe",
    )
    module = "tests.plugins.mcp.servers.conforming"
    env = f'{{PYTHONPATH: "{ENVIRONMENT["PYTHONPATH"]}"}}'

    with tapped(tmp_path, f"{{type: stdio, command: python, args: [-m, {module}], env: {env}}}") as address:
        found = [run_suite(tmp_path / name, "server", "--url", address, "--scenario", name) for name in scenarios]

    assert [{"SUCCESS"}] * len(scenarios) == [{*each.checks.values()} for each in found], [
        each.printed for each in found
    ]


@pytest.mark.slow
def test_a_tap_that_is_ended_as_soon_as_it_tells_its_address_ends_well(tmp_path: Path) -> None:
    env = f'{{PYTHONPATH: "{ENVIRONMENT["PYTHONPATH"]}"}}'
    server = f"{{type: stdio, command: python, args: [-m, tests.plugins.mcp.servers.conforming], env: {env}}}"

    with tapped(tmp_path, server) as address:
        pass  # `tapped` ends the process, and asserts that it has returned

    assert address.startswith("http://127.0.0.1:")


REQUIRED = 37
"""How many scenarios the revision 2026-07-28 requires of a server."""


@pytest.mark.slow
def test_the_suite_finds_through_the_tap_what_it_finds_directly_in_2026_07_28(tmp_path: Path) -> None:
    found = []
    for name in ("direct", "through"):
        one = Listening.start("tests.plugins.mcp.servers.conforming_anew")
        url = f"http://127.0.0.1:{one.port}/mcp"
        options = f'{{type: http, url: "{url}", protocol: 2026-07-28, dynamic_tools: follow}}'
        with tapped(tmp_path, options) if name == "through" else contextlib.nullcontext(url) as address:
            args = ("server", "--url", address, "--requirements", "2026-07-28")
            found.append(run_suite(tmp_path / name, *args, package=ALPHA))
        one.stop()

    direct, through = found
    assert direct.checks == through.checks, through.printed
    # What the revision does not require, such as extensions, is run, too.
    scored = through.printed.partition("SUMMARY")[2].partition("Total")[0]
    assert (0, True) == (through.code, scored.count("✓") >= REQUIRED), through.printed
