"""`keval generate` where its dataset is a trap: what is no file is told in words, and nothing is written."""

from __future__ import annotations

import os

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {mine: {type: testing/echo}}
contexts: {sums: {type: stdio, command: python, args: [-m, keval_testing.stubs, sums]}}
conditions: {tools: {contexts: [sums]}}
metrics: [basic/contains]
"""


@pytest.mark.parametrize("command", ["generate", "check", "run"])
@pytest.mark.parametrize("trap", ["fifo", "folder", "device", "loop"])
def test_a_dataset_that_is_a_trap_is_told_in_words(project: Project, command: str, trap: str) -> None:
    project.write(eval_yaml=CONFIG)
    path = project.root / "questions.jsonl"
    match trap:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.symlink_to(path.name)

    outcome = project.keval(command, "eval.yaml")

    assert 2 == outcome.code
    assert "the dataset cannot be read: " in outcome.stderr
