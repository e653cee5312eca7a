"""Recordings of runs are another package's: without it, what asks for one names it, and nothing else needs it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keval.seams import registry
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
metrics: [double/length]
"""
FROM_A_RECORDING = """
contexts: {docs: {type: stdio, command: server}, then: {from: docs, results: {recorded: before}}}
conditions: {with_docs: {contexts: [then]}}
"""
MISSING = "comes with keval-replay, which is not installed: `"


@pytest.fixture
def asking(project: Project) -> Project:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"question": "Why?"}\n')
    return project


@pytest.fixture
def remove(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Removes what records."""
    found = registry.components
    hidden = lambda group: () if group == "keval.recorders" else found(group)  # noqa: E731
    return lambda: monkeypatch.setattr(registry, "components", hidden)


@pytest.mark.parametrize("command", ["run eval.yaml --record", "resume latest", "score latest"])
def test_to_record_names_the_package_that_is_missing(asking: Project, remove: Callable[[], None], command: str) -> None:
    assert 0 == asking.keval("run", "eval.yaml", "--record").code
    remove()

    outcome = asking.keval(*command.split())

    assert (2, True) == (outcome.code, f"the recorder 'traffic' {MISSING}" in outcome.stderr)


def test_recorded_results_name_the_package_that_is_missing(asking: Project, remove: Callable[[], None]) -> None:
    asking.write(eval_yaml=CONFIG + FROM_A_RECORDING)
    remove()

    outcome = asking.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, f": the recorder 'results' {MISSING}" in outcome.stderr)


def test_all_else_needs_nothing_that_records(asking: Project, remove: Callable[[], None]) -> None:
    remove()

    assert [0, 0] == [asking.keval("run", "eval.yaml").code, asking.keval("resume", "latest").code]
