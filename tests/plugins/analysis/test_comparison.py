"""Two runs held against each other."""

from __future__ import annotations

import pytest

from keval import open_run
from keval_analysis.comparison import compare_runs
from tests.conftest import Project
from tests.ratings import run_of


def test_each_arm_is_held_against_the_same_arm_of_the_other_run(project: Project) -> None:
    before = run_of(project, "before", {"a": 0.2, "b": 0.4, "c": 0.5, "d": 0.5})
    now = run_of(project, "now", {"b": 0.8, "c": 0.9, "d": 0.5, "e": 0.1})

    found = compare_runs(now, before)

    rated = [effect for effect in found.effects if effect.metric == "number/rating"]
    assert [("run", now.id, before.id, 3, 2)] * 2 == [
        (effect.kind, effect.run, effect.against.run, effect.n, effect.dropped) for effect in rated
    ]
    assert ["baseline", "with_docs"] == [effect.condition for effect in rated]
    assert pytest.approx((0.4 + 0.4) / 3) == rated[0].difference
    gained = {
        (change.sample, change.before, change.now) for change in found.changes if change.metric == "number/rating"
    }
    assert {("b", 0.4, 0.8), ("c", 0.5, 0.9)} == gained
    assert [now.id, before.id] == [each.run for each in found.runs]


def test_what_else_differs_is_told(project: Project) -> None:
    before = run_of(project, "before", {"a": 0.2, "b": 0.9})
    now = run_of(project, "now", {"a": 0.2, "b": 0.9, "c": 0.5}, prompt="Answer briefly.")

    told = {
        difference.what: (difference.now, difference.before) for difference in compare_runs(now, before).differences
    }

    answers = {"answers of agent one", "option agents.one.path"}
    assert {"evaluation", "dataset", "samples", *answers, "prompt of with_docs"} == told.keys()
    assert ("3", "2") == told["samples"]
    assert ("Answer briefly.", "none") == told["prompt of with_docs"]


def test_trials_that_were_not_answered_yet_are_told(project: Project) -> None:
    before = run_of(project, "before", {"a": 0.2, "b": 0.9})
    now = run_of(project, "now", {"a": 0.2, "b": 0.9})
    done = now.trials_file.read_text(encoding="utf-8").splitlines(keepends=True)
    now.trials_file.write_text("".join(done[:3]), encoding="utf-8")

    (told,) = (each for each in compare_runs(open_run(now.path), before).differences if each.what == "trials answered")

    assert ("3 of 4", "4 of 4") == (told.now, told.before)
