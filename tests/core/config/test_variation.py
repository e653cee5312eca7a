"""Conditions that differ from the baseline in more than one thing are named, or refused where that is not meant."""

from __future__ import annotations

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: q.jsonl}
agents: {scripted: {}}
contexts: {notes: {tools: [look]}}
conditions:
  baseline: {system_prompt: Hm.}
  with_notes: {system_prompt: Hm., contexts: [notes]}
  with_both: {system_prompt: Think., contexts: [notes]}
metrics: [basic/latency]
"""


@pytest.fixture
def both(project: Project) -> Project:
    project.write(q_jsonl='{"id": "a", "question": "How?"}', eval_yaml=CONFIG)
    return project


def test_a_condition_that_differs_in_two_things_is_named_everywhere(both: Project) -> None:
    told = "with_both differs from baseline in contexts and system_prompt; its effect is of all of these together"
    validated = both.keval("validate", "eval.yaml")
    outcome = both.keval("run", "eval.yaml", env={"COLUMNS": "200"})

    assert 1 == validated.stderr.count("differs from baseline")
    assert f"eval.yaml:7:3: {told}" in validated.stderr
    assert told in outcome.stderr
    assert told in outcome.stdout


def test_what_is_meant_to_vary_is_no_caution_and_all_else_an_error(both: Project) -> None:
    (config := both.root / "eval.yaml").write_text(f"varies: [contexts, system_prompt]\n{config.read_text()}")
    meant = both.keval("validate", "eval.yaml")
    config.write_text(config.read_text().replace("[contexts, system_prompt]", "[contexts]"))

    refused = both.keval("validate", "eval.yaml")

    assert (0, "") == (meant.code, meant.stderr)
    assert 2 == refused.code
    assert "eval.yaml:8:15: 'with_both' differs from the baseline in system_prompt, which `varies` does not name" in (
        refused.stderr
    )
