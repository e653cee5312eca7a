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


@pytest.mark.parametrize(
    ("active", "first"),
    [(None, "own"), ("own", "own"), ("VIRTUAL_ENV", "path"), ("CONDA_PREFIX", "path")],
)
def test_programs_are_those_of_the_active_environment_or_else_of_kevals_own(
    active: str | None, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", "/tools/keval")
    monkeypatch.setattr(sys, "executable", "/tools/keval/bin/python")
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    if active == "own":
        monkeypatch.setenv("VIRTUAL_ENV", "/tools/keval")
    elif active is not None:
        monkeypatch.setenv(active, "/home/me/servers")

    places = processes.search_path("/home/me/servers/bin:/usr/bin").split(os.pathsep)

    assert {"own": "/tools/keval/bin", "path": "/home/me/servers/bin"}[first] == places[0]
    assert 3 == len(places)
