"""The supervisor between keval and what it starts."""

from __future__ import annotations

import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from keval import processes


@pytest.mark.skipif(sys.platform != "linux", reason="there is no supervisor on other systems")
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_command_runs_under_the_supervisor_whether_it_was_compiled_or_not(
    is_compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = tmp_path / "processes.pyc"
    if is_compiled:
        py_compile.compile(processes.__file__, str(compiled))
    monkeypatch.setattr(processes.__spec__, "cached", str(compiled))

    command = processes.supervised(("/bin/sh", "-c", "echo started; exit 3"))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    assert str(compiled if is_compiled else processes.__file__) in command
    assert (3, "started\n") == (done.returncode, done.stdout)
