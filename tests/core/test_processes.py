"""The supervisor between keval and what it starts."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from keval import processes


@pytest.mark.skipif(sys.platform != "linux", reason="there is no supervisor on other systems")
@pytest.mark.parametrize("kept", ["compiled", "not compiled", "compiled before it changed"])
def test_a_command_runs_under_the_supervisor_whether_it_was_compiled_or_not(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = tmp_path / "processes.pyc"
    is_compiled = kept == "compiled"
    if kept != "not compiled":
        py_compile.compile(processes.__file__, str(compiled))
    if kept == "compiled before it changed":
        os.utime(compiled, (0, 0))
    monkeypatch.setattr(processes.__spec__, "cached", str(compiled))

    command = processes.supervised(("/bin/sh", "-c", "echo started; exit 3"))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    assert str(compiled if is_compiled else processes.__file__) in command
    assert (3, "started\n") == (done.returncode, done.stdout)
