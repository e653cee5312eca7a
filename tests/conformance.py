"""The official conformance suite of MCP, which runs on Node 22 or newer, and servers from npm.

`KEVAL_CONFORMANCE` names a folder where `.ci/run` has installed them; without it, or with a Node that is too old, the
tests that need them are skipped. The suite is there as it is released, and in the alpha that knows 2026-07-28.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

__all__ = ["ALPHA", "Outcome", "npm_module", "npm_server", "run_suite"]

ALPHA = "conformance-alpha"
"""The suite that knows the revision 2026-07-28."""

_NEWEST_TOO_OLD = 21


@attrs.frozen
class Outcome:
    """What the suite found: its exit code, what it printed, and the status of each check.

    A check that was made more than once has the worst status that it had.
    """

    code: int
    printed: str
    checks: Mapping[str, str]


def run_suite(
    folder: Path, *args: str, environ: Mapping[str, str] | None = None, package: str = "conformance"
) -> Outcome:
    """Run the suite and read what it writes to `folder`; skips the test where there is no suite."""
    node, suite = npm_server(package)
    done = subprocess.run(
        [node, suite, *args, "--output-dir", str(folder)],
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    checks: dict[str, str] = {}
    for path in folder.rglob("checks.json"):
        for check in json.loads(path.read_text(encoding="utf-8")):
            if check["status"] != "INFO" and checks.get(check["id"], "SUCCESS") == "SUCCESS":
                checks[check["id"]] = check["status"]
    return Outcome(done.returncode, done.stdout + done.stderr, checks)


def npm_server(name: str) -> tuple[str, str]:
    """Return the command of one of MCP's own servers; skips the test where it is not installed."""
    return _installed(f"@modelcontextprotocol/{name}/dist/index.js")


def npm_module(path: str) -> tuple[str, str]:
    """Return a Node, and the path of a module; skips the test where it is not installed."""
    return _installed(path)


def _installed(path: str) -> tuple[str, str]:
    root = os.environ.get("KEVAL_CONFORMANCE")
    if not root:
        pytest.skip("KEVAL_CONFORMANCE names no folder with the conformance suite from npm")
    modules = Path(root, "node_modules")
    suite = modules / path
    assert suite.is_file(), f"KEVAL_CONFORMANCE={root}: there is no {suite}"
    own = modules / "node" / "bin" / "node"
    node = str(own) if own.is_file() else shutil.which("node")
    if node is None or _version(node) <= _NEWEST_TOO_OLD:
        pytest.skip("the conformance suite needs Node 22 or newer")
    return node, str(suite)


def _version(node: str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0
