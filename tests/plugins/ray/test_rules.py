"""The executor `ray` keeps the rules of executors, five times in one process, and leaves no Ray running."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
from keval_testing.subject import Belongings
from tests.kits.executor_kit import check_executor

cannot = {"nothing left behind": "Ray keeps its log and a few sockets open in a process that was its driver"}
check_executor("ray", options={"workers": 2}, cannot=cannot)
print("left:", sorted(Belongings.now().processes))
"""


@pytest.mark.slow
def test_a_ray_of_ones_own_keeps_the_rules() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, check=False)

    assert (0, "left: []\n") == (done.returncode, done.stdout), done.stderr
