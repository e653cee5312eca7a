"""A project runs commands and evaluations in its folder."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from keval_testing import Project, ScriptedModel, says


def test_a_project_runs_keval_in_its_folder(keval_project: Project) -> None:
    before = Path.cwd()

    ran = keval_project.run("--limit", "2")
    evaluated = keval_project.evaluate(limit=1)
    listed = keval_project.keval("list", "--json")

    assert [2, 1] == [run.count_trials() for run in (ran, evaluated)]
    assert (0, 2) == (listed.code, len(listed.data))
    assert keval_project.root / "results" == ran.path.parent.parent
    assert before == Path.cwd()


def test_a_command_that_ends_otherwise_fails_the_test(keval_project: Project) -> None:
    keval_project.write("eval.yaml", "agents: {echo: {type: testing/none}}\n")

    with pytest.raises(AssertionError, match=r"keval run ended with 2 instead of 0: error: eval.yaml:1:1: the key"):
        keval_project.run()


def test_failing_samples_fail_their_trials(keval_project: Project) -> None:
    keval_project.write(
        "eval.yaml",
        """
        dataset: {path: questions.jsonl}
        agents: {echo: {type: testing/echo, fails: [norway]}}
        metrics: [testing/words]
        """,
    )

    run = keval_project.run(code=3)

    assert {"finland": None, "norway": "told", "open": None} == {
        trial.sample.id: trial.failure and trial.failure.kind for trial in run.trials()
    }


def test_a_scripted_model_is_served_for_a_test(scripted_model: ScriptedModel) -> None:
    script = scripted_model(says("Hello."))

    assert script.model.endpoint is not None
    assert script.model.endpoint.urls["openai-chat"].startswith("http://127.0.0.1:")


def test_a_scripted_model_is_closed_where_a_test_raises(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError, match="told"), ScriptedModel.serve_in_thread():
        raise RuntimeError("told")

    gc.collect()
    assert [] == caplog.messages
