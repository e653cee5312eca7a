"""Hook plugins prepare each attempt at a trial and clean up after it, however it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keval.plugin import PluginWarning
from tests.conftest import Outcome, Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {it: {}}
metrics: [double/length]
execution:
  timeout_seconds: 0.5
  max_concurrent: 1
  seed: 5  # by which the samples of each test are asked in the order of their file
  retry: {max_attempts: 2, initial_backoff_seconds: 0}
"""


def staged(project: Project, options: dict[str, Any], *samples: dict[str, Any]) -> tuple[Outcome, list[str]]:
    stage = {"double/stagehand": {"path": ".", **options}}
    project.write(
        eval_yaml=f"{CONFIG}plugins: [{json.dumps(stage)}]\n",
        questions_jsonl="".join(json.dumps({"question": "How?", **sample}) + "\n" for sample in samples),
    )
    outcome = project.run("eval.yaml")
    return outcome, (project.root / "stage.txt").read_text(encoding="utf-8").splitlines()


def failures(project: Project) -> dict[str, tuple[str, str, str] | None]:
    found = {trial["sample"]: trial["failure"] for trial in project.lines("trials.jsonl")}
    return {name: failed and (failed["stage"], failed["kind"], failed["message"]) for name, failed in found.items()}


@pytest.mark.slow
def test_hooks_are_called_around_every_attempt_and_told_how_it_ended(project: Project) -> None:
    outcome, told = staged(project, {}, {"id": "good"}, {"id": "busy", "busy": 1}, {"id": "hangs", "hang": True})

    good, busy, hangs = (f"scripted/it/{name}/1" for name in ("good", "busy", "hangs"))
    assert 3 == outcome.code
    assert [
        *(f"started {good} 1", f"ended {good} 1 None"),
        *(f"started {busy} 1", f"ended {busy} 1 rate_limit", f"started {busy} 2", f"ended {busy} 2 None"),
        *(f"started {hangs} 1", f"ended {hangs} 1 timeout", f"started {hangs} 2", f"ended {hangs} 2 timeout"),
    ] == told


def test_an_attempt_that_cannot_be_prepared_fails_and_is_cleaned_up_after(project: Project) -> None:
    outcome, told = staged(project, {"fails_at": "odd"}, {"id": "odd"}, {"id": "good"})

    plugin = "the hook plugin 'double/stagehand' of keval-doubles 1.0"
    problem = f"{plugin} failed in keval_trial_started: ConnectionError: no stage"
    assert (3, {"odd": ("context", "hook_failed", problem), "good": None}) == (outcome.code, failures(project))
    odd, good = "scripted/it/odd/1", "scripted/it/good/1"
    assert [f"started {odd} 1", f"ended {odd} 1 hook_failed", f"started {good} 1", f"ended {good} 1 None"] == told


def test_what_cannot_be_cleaned_up_is_a_warning(project: Project) -> None:
    with pytest.warns(PluginWarning, match="failed in keval_trial_ended of scripted/it/a/1: ConnectionError: no broom"):
        outcome, _ = staged(project, {"ends_badly": True}, {"id": "a"})

    assert (0, {"a": None}) == (outcome.code, failures(project))
