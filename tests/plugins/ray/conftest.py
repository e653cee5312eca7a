"""A Ray cluster of two nodes on this machine, for the tests of the executor `ray`. Ray is installed apart."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.conftest import ON_PATH

collect_ignore_glob = [] if find_spec("ray") else ["test_*.py"]

TWO_NODES = Path(__file__).with_name("two_nodes.py")


@attrs.define
class RunningCluster:
    """A cluster that is up. `environ` is what whoever connects to it needs."""

    _process: subprocess.Popen[str]
    environ: dict[str, str]
    address: str = ""
    session: Path = Path()

    def command(self, text: str) -> None:
        """Have a node added (`add 3`) or killed (`kill 1`), and wait until it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()
        assert self._read() == {"done": text}

    def _read(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError("the cluster has ended")


@contextmanager
def running_cluster(nodes: int = 2) -> Iterator[RunningCluster]:
    environ = {
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": os.pathsep.join(ON_PATH),
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_failure_threshold": "3",
    }
    process = subprocess.Popen(
        [sys.executable, str(TWO_NODES), str(nodes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environ},
    )
    cluster = RunningCluster(process, environ)
    try:
        told = cluster._read()
        cluster.address, cluster.session = told["address"], Path(told["session"])
        yield cluster
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster() as found:
        yield found
