"""The tap's record and the framework's story must agree; a trial that is no evidence is never scored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {notes: {tools: [look, write]}}
conditions: {with_notes: {contexts: [notes]}}
metrics: [double/length]
execution: {retry: {max_attempts: 1}}
"""
LOOK = {"name": "look", "arguments": {"where": "here"}}


def trial_of(project: Project, **script: Any) -> tuple[int, dict[str, Any]]:
    project.write(eval_yaml=CONFIG, questions_jsonl=json.dumps({"question": "How?", **script}) + "\n")
    outcome = project.keval("run", "eval.yaml", "-q")
    (trial,) = project.lines("trials.jsonl")
    return outcome.code, trial


def test_a_call_takes_result_duration_and_server_from_where_it_ran(project: Project) -> None:
    seen = {**LOOK, "arguments": {"where": "here", "how": None}, "result": "a cat"}

    code, trial = trial_of(project, calls=[{**LOOK, "result": "told"}], seen=[seen])

    (call,) = trial["transcript"]["tool_calls"]
    assert (0, "a cat", 0.25, "notes", 1) == (
        code,
        call["result"],
        call["duration"],
        call["server"],
        call["executions"],
    )


def test_a_replayed_call_is_told_apart_from_one_made_twice(project: Project) -> None:
    code, trial = trial_of(project, calls=[{**LOOK, "result": "x"}], seen=[{**LOOK, "result": "x"}] * 2)

    assert (0, [2]) == (code, [call["executions"] for call in trial["transcript"]["tool_calls"]])


def test_a_call_made_twice_ran_once_each(project: Project) -> None:
    code, trial = trial_of(project, calls=[{**LOOK, "result": "x"}] * 2, seen=[{**LOOK, "result": "x"}] * 2)

    assert (0, [1, 1]) == (code, [call["executions"] for call in trial["transcript"]["tool_calls"]])


def test_a_call_that_failed_keeps_its_outcome_beside_its_repetition_that_did_not(project: Project) -> None:
    made = [{**LOOK, "error": "busy"}, {**LOOK, "result": "a cat"}]

    code, trial = trial_of(project, calls=made, seen=made)

    told = [(call["result"], call["error"], call["executions"]) for call in trial["transcript"]["tool_calls"]]
    assert (0, [(None, "busy", 1), ("a cat", None, 1)]) == (code, told)


def test_calls_made_together_keep_their_own_results_whichever_came_first(project: Project) -> None:
    first, second = {**LOOK, "result": "a cat"}, {**LOOK, "result": "a dog"}

    code, trial = trial_of(project, calls=[first, second], seen=[second, first])

    assert (0, ["a cat", "a dog"]) == (code, [call["result"] for call in trial["transcript"]["tool_calls"]])


def test_a_replayed_call_has_the_outcome_that_the_framework_had(project: Project) -> None:
    seen = [{**LOOK, "error": "gone"}, {**LOOK, "result": "a cat"}]

    code, trial = trial_of(project, calls=[{**LOOK, "result": "a cat"}], seen=seen)

    (call,) = trial["transcript"]["tool_calls"]
    assert (0, "a cat", None, 2) == (code, call["result"], call["error"], call["executions"])


def test_a_call_that_the_tap_could_not_pass_on_never_ran(project: Project) -> None:
    made = {**LOOK, "error": "the server does not come up"}

    code, trial = trial_of(project, calls=[made], seen=[{**made, "executions": 0}])

    assert (0, [0]) == (code, [call["executions"] for call in trial["transcript"]["tool_calls"]])


def test_a_call_that_the_framework_answered_itself_claims_no_run(project: Project) -> None:
    made = [{**LOOK, "result": "a cat"}, {**LOOK, "error": "not run", "sent": False}]
    seen = [{**LOOK, "error": "reset"}, {**LOOK, "result": "a cat"}]

    code, trial = trial_of(project, calls=made, seen=seen)

    told = [(call["result"], call["error"], call["executions"]) for call in trial["transcript"]["tool_calls"]]
    assert (0, [("a cat", None, 2), (None, "not run", 0)]) == (code, told)


def test_a_call_that_the_framework_refused_never_ran(project: Project) -> None:
    code, trial = trial_of(project, calls=[{"name": "lok", "error": "no such tool"}])

    assert (0, [0]) == (code, [call["executions"] for call in trial["transcript"]["tool_calls"]])


STORIES: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "a result that no server gave": (
        {"calls": [{**LOOK, "result": "made up"}]},
        ("calls_disagree", "the framework reports look, which no server ran"),
    ),
    "a call that the framework hides": (
        {"seen": [{**LOOK, "result": "x"}]},
        ("calls_disagree", "the servers ran look, which the framework does not report"),
    ),
    "a server lost on the way": (
        {"lost": "server 'notes' died"},
        ("server_lost", "server 'notes' died"),
    ),
    "tools that did not load": (
        {"offers": ["look"]},
        ("tools_missing", "the agent has other tools than its condition: without write; the trial is not scored"),
    ),
    "tools of no condition": (
        {"offers": ["look", "write", "search"]},
        ("tools_missing", "the agent has other tools than its condition: with search; the trial is not scored"),
    ),
}


@pytest.mark.parametrize("case", STORIES)
def test_a_trial_that_is_no_evidence_fails_and_is_not_scored(project: Project, case: str) -> None:
    script, failure = STORIES[case]

    code, trial = trial_of(project, **script)

    assert (3, failure) == (code, (trial["failure"]["kind"], trial["failure"]["message"]))
    assert [] == project.lines("scores.jsonl")
