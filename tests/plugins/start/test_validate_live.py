"""`keval validate --live` says what is there and what is not, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from keval.seams import registry, results
from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("simulated_here")

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {notes: {tools: [look]}, down: {type: notes, down: true}}
conditions: {baseline: {contexts: [notes]}}
metrics: [double/length]
"""


def test_what_is_well_is_said_and_no_key_is_shown(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "How?"}\n')

    outcome = project.keval("validate", "--live", "eval.yaml", "--json", env={"OPENAI_API_KEY": "sk-canary"})

    found = {(finding["about"], finding["found"]): finding["well"] for finding in outcome.data}
    assert {"plugins", "keys", "disk", "sandbox", "servers", "config"} == {about for about, _ in found}
    assert True is found["keys", "openai: OPENAI_API_KEY is set"]
    assert True is found["config", "1 trial can begin"]
    assert 2 == sum(about == "sandbox" for about, _ in found)  # each works, or it is said why it does not
    assert "sk-canary" not in outcome.stdout
    # Doubles that cannot be imported are installed here on purpose.
    assert {about for (about, _), well in found.items() if well is False} == {"plugins"}
    assert all(finding["remedy"] for finding in outcome.data if finding["well"] is False)


def test_what_a_config_needs_and_is_not_there_is_named(project: Project) -> None:
    config = CONFIG.replace("[notes]}}", "[down]}}").replace("scripted: {}", "modelled: {model: openai/gpt-test}")
    project.write(eval_yaml=config, questions_jsonl='{"id": "a", "question": "How?"}\n')

    outcome = project.keval("validate", "--live", "eval.yaml", env={"OPENAI_API_KEY": None})

    assert 2 == outcome.code
    assert "FAULT  config    OPENAI_API_KEY is not set; openai/gpt-test needs it: export it" in outcome.stdout
    assert "FAULT  config    eval.yaml:3:36: server 'down' did not come up: no such file" in outcome.stdout


def test_a_folder_that_cannot_be_written_is_a_fault(project: Project, tmp_path: Path) -> None:
    outcome = project.keval("validate", "--live", "-o", "/proc/results")

    assert 2 == outcome.code
    assert "FAULT  disk      /proc cannot be written: " in outcome.stdout
    assert "choose another with -o" in outcome.stdout


def test_a_workspace_plugin_that_cannot_be_imported_is_one_fault_among_the_findings(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = registry.components
    absent = registry.Component("keval.workspaces", "absent", "keval_doubles.nowhere:Absent", "keval_doubles", "1.0")
    monkeypatch.setattr(
        registry, "components", lambda group: [*([absent] if group == absent.group else ()), *found(group)]
    )

    outcome = project.keval("validate", "--live")

    assert "FAULT  plugins   the workspace 'absent' of keval_doubles 1.0 does not import" in outcome.stdout
    assert "sandbox   " in outcome.stdout


def test_a_mirror_of_results_that_cannot_be_imported_is_one_fault_among_the_findings(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = registry.Component("keval.results", "remote", "keval_doubles.nowhere:Absent", "keval_doubles", "1.0")
    found = registry.components
    monkeypatch.setattr(registry, "components", lambda group: [absent] if group == absent.group else found(group))
    results._mirror.cache_clear()  # of tests before
    (project.root / results.MARKER).touch()

    outcome = project.keval("validate", "--live", "-o", ".")

    assert "FAULT  results   the results mirror 'remote' of keval_doubles 1.0 does not import" in outcome.stdout
    assert "sandbox   " in outcome.stdout


def test_a_config_that_is_wrong_is_an_error_of_its_own(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("scripted: {}", "skripted: {}"), questions_jsonl="")

    outcome = project.keval("validate", "--live", "eval.yaml")

    assert 2 == outcome.code
    assert "no agent named 'skripted' is installed" in outcome.stderr
