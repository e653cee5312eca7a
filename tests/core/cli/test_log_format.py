"""`--log-format json`: what a run does, as lines of JSON on stderr."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from tests.canaries import forms, leaks
from tests.conftest import Outcome, Project

CONFIG = """
name: notes
dataset: {path: questions.jsonl}
agents:
  scripted: {}
conditions: {baseline: {}}
metrics: [double/length]
judges: {warm: {type: strict}}
rubrics: [double/brevity]
execution: {retry: {max_attempts: 1}}
"""
SAMPLES = [{"id": "good", "question": "why?"}, {"id": "bad", "question": "why not?", "fail": "no \x1b[2J luck"}]


def events(outcome: Outcome) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in outcome.stderr.splitlines()]
    assert all(datetime.fromisoformat(event["at"]).tzinfo for event in found)
    assert outcome.stderr.isascii()
    return found


@pytest.fixture
def notes(project: Project) -> Project:
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    return project


def test_a_run_is_told_as_lines_of_json_and_its_summary_stays_on_stdout(notes: Project) -> None:
    outcome = notes.keval("run", "eval.yaml", "--log-format", "json", "--json")

    told = events(outcome)
    started, *trials = told[:3]
    assert ["run_started", "trial_finished", "trial_finished", "trial_scored", "trial_scored", "run_finished"] == [
        event["event"] for event in told if event["event"] != "message"
    ]
    assert (2, ["scripted"], outcome.data["run"]) == (started["trials"], started["agents"], started["run"])
    assert {"good": None, "bad": {"stage": "agent", "kind": "told", "message": "no \x1b[2J luck"}} == {
        trial["sample"]: trial["failure"] for trial in trials
    }
    values = {(score["metric"], score["judge"]): score["value"] for event in told[3:5] for score in event["scores"]}
    assert {("double/length", None): 0.04, ("double/brevity", "warm"): 2.0} == values
    finished = next(event for event in told if event["event"] == "run_finished")
    assert (3, 1, 2, outcome.data["elapsed"]) == (
        outcome.code,
        *(finished[key] for key in ("failed", "planned", "elapsed")),
    )
    messages = [event["message"] for event in told if event["event"] == "message"]
    assert [finished["directory"]] == messages[:1]
    assert "to run the failed trials again: `keval resume " in messages[1]


def test_resuming_and_scoring_log_alike(notes: Project) -> None:
    notes.keval("run", "eval.yaml")

    resumed = events(notes.keval("resume", "latest", "--add-repetitions", "1", "--log-format", "json"))
    scored = events(notes.keval("score", "latest", "--metric", "double/broken", "--log-format", "json"))

    assert ["run_started", "trial_finished", "trial_finished"] == [event["event"] for event in resumed[:3]]
    failures = [score["failure"]["kind"] for event in scored for score in event.get("scores", ())]
    assert ["RuntimeError"] * 2 == failures
    assert ["run_finished"] == [event["event"] for event in scored if event["event"].startswith("run")]


def test_errors_and_notices_are_lines_of_json_too(notes: Project) -> None:
    notes.write(odd_yaml=CONFIG.replace("execution: {", "execution: {max_concurent: 3, "))

    wrong = notes.keval("run", "odd.yaml", "--log-format", "json")
    absent = notes.keval("score", "absent", "--log-format", "json")

    (problem,) = events(wrong)
    assert (2, True) == (wrong.code, "did you mean 'max_concurrent'?" in problem["message"])
    assert ["message"] == [event["event"] for event in events(absent)]


def test_a_warm_judge_is_a_notice_at_its_place(notes: Project) -> None:
    judge = "judges: {warm: {type: openai, model: simulated/judge, temperature: %s}}"
    notes.write(
        warm_yaml=CONFIG.replace("judges: {warm: {type: strict}}", judge % 0.7),
        cool_yaml=CONFIG.replace("judges: {warm: {type: strict}}", judge % 0),
        plain_yaml=CONFIG.replace("judges: {warm: {type: strict}}", judge % "null"),
    )

    warm, cool, plain = (notes.keval("validate", f"{name}.yaml") for name in ("warm", "cool", "plain"))

    assert (0, "", "") == (warm.code, cool.stderr, plain.stderr)
    assert "note: warm.yaml:7:55: the judge 'warm' has temperature 0.7, so repeated" in warm.stderr


def test_no_form_of_a_secret_is_in_the_log(project: Project) -> None:
    secret = 'öko/te"st+ ==?\nzweite Zeile'
    failing = (
        {"id": f"s{index}", "question": "How?", "fail": f"no luck with {form}"}
        for index, form in enumerate(forms(secret).values())
    )
    web = 'contexts: {web: {type: notes, headers: {Authorization: "Bearer ${CANARY}"}}}\n'
    config = CONFIG.replace("conditions: {baseline: {}}", web + "conditions: {it: {contexts: [web]}}")
    project.write(eval_yaml=config, questions_jsonl="".join(json.dumps(sample) + "\n" for sample in failing))

    outcome = project.keval("run", "eval.yaml", "--log-format", "json", env={"CANARY": secret})

    told = [event["failure"]["message"] for event in events(outcome) if event["event"] == "trial_finished"]
    assert (3, len(forms(secret))) == (outcome.code, len([message for message in told if "[secret]" in message]))
    assert [] == leaks({"CANARY": secret}, [outcome.stdout, *map(str, told), outcome.stderr], project.root / "results")
