"""Output that cannot be written: a documented exit code, and no traceback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keval.cli.output import _Guarded
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics: [double/length]
"""
FULL = Path("/dev/full")
full_device = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


def piped(project: Project, stdout: int, stderr: int, *args: str) -> tuple[int, str]:
    """Run keval with these descriptors; returns its exit code, and standard error where that is a pipe."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "keval", *args]
    done = subprocess.run(
        command, cwd=project.root, env=environ, stdout=stdout, stderr=stderr, text=True, check=False, timeout=60
    )
    return done.returncode, done.stderr or ""


@full_device
def test_a_full_disk_below_standard_output_is_told(project: Project) -> None:
    with FULL.open("wb") as full:
        outcome = piped(project, full.fileno(), subprocess.PIPE, "schema")

    told = "error: cannot write to standard output: No space left on device; finished trials and scores are saved\n"
    assert (2, told) == outcome


@full_device
def test_a_run_goes_on_when_its_messages_are_lost(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "How?"}\n')

    with FULL.open("wb") as full:
        outcome = piped(project, subprocess.DEVNULL, full.fileno(), "run", "eval.yaml")

    assert (0, "") == outcome
    assert 1 == len(project.lines("trials.jsonl"))


def test_a_reader_that_has_gone_ends_the_command_quietly(project: Project) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        outcome = piped(project, writing, subprocess.PIPE, "--help")
    finally:
        os.close(writing)

    assert (141, "") == outcome


def test_a_reader_that_is_slow_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    write, text = os.write, b"x" * 300_000
    tries: list[int] = []

    def counted(file: int, data: bytes) -> int:
        tries.append(file)
        return write(file, data)

    def read() -> bytes:
        time.sleep(0.1)
        with os.fdopen(reading, "rb") as file:
            return file.read()

    monkeypatch.setattr(os, "write", counted)
    with ThreadPoolExecutor() as threads:
        found = threads.submit(read)
        try:
            with io.BufferedWriter(_Guarded(writing, needed=True)) as stream:
                stream.write(text)
        finally:
            os.close(writing)

    assert text == found.result()
    assert len(tries) < 1000  # and not as often as a core can


def test_names_beyond_what_a_file_system_takes(project: Project) -> None:
    project.write(eval_yaml=f"name: {'é' * 300}\n{CONFIG}", questions_jsonl='{"id": "a", "question": "How?"}\n')
    long = "z" * 300

    ran = project.keval("run", "eval.yaml", "-q")
    refused = [
        project.keval("run", "eval.yaml", "-q", "-o", long),
        project.keval("run", long),
        project.keval("list", "-o", long),
        project.keval("report", long),
        project.keval("export", "latest", "--format", "eee", "--to", long),
    ]

    assert 0 == ran.code, ran.stderr
    assert 190 < len(project.run_directory().parent.name.encode()) <= 200
    assert [2] * 5 == [outcome.code for outcome in refused]
    assert all("Traceback" not in outcome.stderr for outcome in refused)
