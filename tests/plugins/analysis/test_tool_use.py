"""Required tool use: who ignores the tools is asked again, kept or failed, and never in silence."""

from __future__ import annotations

import json

import pytest

from keval import Transcript
from keval.config.evaluation import Condition
from keval.execute.trial.reconciliation import ToolUseError, check_tool_use
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agent: {type: scripted}
mcp_servers:
  notes: {tools: [look], direct: true}
conditions:
  baseline: {mcp_servers: []}
  with_notes: {mcp_servers: [notes], require_mcp_tool_use: true}
execution: {num_repetitions: 1, retry: {max_attempts: 3, initial_backoff_seconds: 0}}
metrics: [double/length]
"""
CALL = [{"name": "look", "result": "7"}]
QUESTIONS: list[dict[str, object]] = [
    {"id": "at_once", "question": "q", "calls": CALL, "tells_context": True},
    {"id": "later", "question": "q", "calls": CALL, "calls_from": 3, "tells_context": True},
    {"id": "never", "question": "q"},
]


def dataset(*questions: object) -> str:
    return "".join(json.dumps(question) + "\n" for question in questions)


def outcomes(project: Project) -> dict[str, tuple[object, ...]]:
    """What became of each trial that had to use a tool: complied, kind of failure, kinds of the discarded."""
    return {
        trial["sample"]: (
            trial["complied"],
            trial["failure"] and trial["failure"]["kind"],
            [attempt["failure"]["kind"] for attempt in trial["attempts"]],
        )
        for trial in project.lines("trials.jsonl")
        if trial["condition"] == "with_notes"
    }


def test_a_trial_that_ignored_the_tools_is_asked_again_and_every_answer_is_kept(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(*QUESTIONS))

    outcome = project.keval("run", "eval.yaml", "--json")

    arms = {arm["condition"]: arm for arm in outcome.data["trials"]}
    told = {"answered": 3, "complied_first": 1, "complied": 2, "discarded": 4, "on_missing_tool_use": "retry"}
    assert (3, None, told) == (outcome.code, arms["baseline"]["compliance"], arms["with_notes"]["compliance"])
    assert {
        "at_once": (True, None, []),
        "later": (True, None, ["no_tool_use", "no_tool_use"]),
        "never": (False, "no_tool_use", ["no_tool_use", "no_tool_use"]),
    } == outcomes(project)


def test_asking_again_changes_the_seed_and_nothing_else_does(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(QUESTIONS[1]))

    project.keval("run", "eval.yaml")

    baseline, with_notes = project.lines("trials.jsonl")
    answers = [attempt["transcript"]["messages"][-1]["text"].split() for attempt in with_notes["attempts"]]
    answers.append(with_notes["output"].split())
    assert [["with_notes", "1", "1"], ["with_notes", "1", "2"], ["with_notes", "1", "3"]] == [a[:3] for a in answers]
    assert (3, baseline["output"].split()[3]) == (len({a[3] for a in answers}), answers[0][3])


def test_what_discarded_answers_cost_is_told_apart(project: Project) -> None:
    question = {**QUESTIONS[1], "usage": {"input_tokens": 100, "output_tokens": 7}}
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(question))

    outcome = project.keval("run", "eval.yaml", "--json")

    arm = {arm["condition"]: arm for arm in outcome.data["trials"]}["with_notes"]
    assert (2, 200, 0) == (arm["model_calls"], arm["usage"]["input_tokens"], arm["usage"]["unknown"])
    assert (2, 200, 14) == (
        arm["given_up"]["model_calls"],
        arm["given_up"]["usage"]["input_tokens"],
        arm["given_up"]["usage"]["output_tokens"],
    )


def test_whether_tools_were_used_may_be_unknown() -> None:
    required = Condition(require_mcp_tool_use=True)

    assert check_tool_use(Transcript(unlisted_calls=None), required) is None
    assert check_tool_use(Transcript(unlisted_calls=2), required) is True
    assert check_tool_use(Transcript(unlisted_calls=2), Condition(require_mcp_tool_success=True)) is None
    with pytest.raises(ToolUseError):
        check_tool_use(Transcript(), required)


def test_the_report_says_how_many_complied_at_first_attempt(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(*QUESTIONS))

    outcome = project.keval("run", "eval.yaml")

    said = " ".join(outcome.stdout.split())
    first = "scripted with_notes: 1 of 3 trials (33 %) used tools as required at the first attempt"
    assert f"{first}; 4 answers were discarded" in said
    assert (
        "and their trials run again; 1 that never did failed and have no score, which favours this condition." in said
    )


def test_an_answer_without_tool_use_can_be_kept(project: Project) -> None:
    config = CONFIG.replace("require_mcp_tool_use: true", "require_mcp_tool_use: true, on_missing_tool_use: keep")
    project.write(eval_yaml=config, questions_jsonl=dataset(*QUESTIONS))

    outcome = project.keval("run", "eval.yaml")

    assert 0 == outcome.code
    assert {"at_once": (True, None, []), "later": (False, None, []), "never": (False, None, [])} == outcomes(project)
    assert 6 == len(project.lines("scores.jsonl"))


def test_an_answer_without_tool_use_can_fail_at_once(project: Project) -> None:
    config = CONFIG.replace("require_mcp_tool_use: true", "require_mcp_tool_use: true, on_missing_tool_use: fail")
    project.write(eval_yaml=config, questions_jsonl=dataset(*QUESTIONS))

    outcome = project.keval("run", "eval.yaml")

    assert 3 == outcome.code
    assert (False, "no_tool_use", []) == outcomes(project)["later"]


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        ([{"name": "look", "error": "no such file"}], "no_tool_success"),
        ([{"name": "nowhere", "error": "unknown tool", "sent": False}], "no_tool_success"),
        ([{"name": "look", "error": "no such file"}, {"name": "look", "result": "7"}], None),
        ([], None),
    ],
    ids=["all failed", "none was sent", "one succeeded", "none made"],
)
def test_required_success_is_one_call_that_succeeds_where_there_are_calls(
    project: Project, calls: list[object], kind: str | None
) -> None:
    config = CONFIG.replace("require_mcp_tool_use", "require_mcp_tool_success")
    project.write(eval_yaml=config, questions_jsonl=dataset({"id": "a", "question": "q", "calls": calls}))

    project.keval("run", "eval.yaml")

    assert kind == outcomes(project)["a"][1]


def test_a_call_that_no_server_ran_is_no_use_of_a_tool(project: Project) -> None:
    calls = [{"name": "nowhere", "error": "unknown tool", "sent": False}]
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset({"id": "a", "question": "q", "calls": calls}))

    project.keval("run", "eval.yaml")

    assert "no_tool_use" == outcomes(project)["a"][1]


def test_an_attempt_that_the_model_refused_says_nothing_of_compliance(project: Project) -> None:
    busy = {"id": "a", "question": "q", "calls": CALL, "busy": 1}
    project.write(eval_yaml=CONFIG, questions_jsonl=dataset(busy))

    outcome = project.keval("run", "eval.yaml", "--json")

    told = {arm["condition"]: arm["compliance"] for arm in outcome.data["trials"]}["with_notes"]
    assert (1, 1, 0) == (told["answered"], told["complied_first"], told["discarded"])


def test_a_condition_without_a_context_cannot_require_tool_use(project: Project) -> None:
    config = (
        CONFIG.replace("{mcp_servers: []}", "{require_mcp_tool_use: true}")
        .replace("mcp_servers", "contexts")
        .replace("agent: {type: scripted}", "agents: {scripted: {}}")
    )
    project.write(eval_yaml=config, questions_jsonl=dataset(*QUESTIONS))

    outcome = project.keval("validate", "eval.yaml")

    problem = "eval.yaml:6:14: 'baseline' has no context and so no tools; add a context, or remove this key"
    assert (2, f"error: {problem}\n") == (outcome.code, outcome.stderr)


def test_a_condition_of_k_eval_without_a_server_is_not_held_to_tool_use(project: Project) -> None:
    config = CONFIG.replace("{mcp_servers: []}", "{mcp_servers: [], require_mcp_tool_use: true}")
    project.write(eval_yaml=config, questions_jsonl=dataset(QUESTIONS[0]))

    outcome = project.keval("run", "eval.yaml", "--condition", "baseline")

    note = "eval.yaml:6:31: 'baseline' has no server, so require_mcp_tool_use is not enforced (the same as k-eval)"
    assert (0, True) == (outcome.code, f"note: {note}" in outcome.stderr)
