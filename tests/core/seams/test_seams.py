"""What keval does with parts that do not keep to their seam, and with what their seam lets them do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keval import open_run
from keval.plugin import PluginWarning
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {notes: {text: "Read. ", tools: [look]}}
conditions:
  baseline: {}
  with_notes: {contexts: [notes]}
metrics: [double/length]
execution: {timeout_seconds: 5, retry: {initial_backoff_seconds: 0}}
"""


def lines(*samples: Any) -> str:
    return "".join(json.dumps({"question": "How?", **sample}) + "\n" for sample in samples)


def failures(project: Project) -> dict[str, tuple[str, str] | None]:
    trials = project.lines("trials.jsonl")
    return {t["id"]: (t["failure"]["kind"], t["failure"]["message"]) if t["failure"] else None for t in trials}


def test_an_agent_that_returns_no_transcript_fails_its_trial_alone(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG, questions_jsonl=lines({"id": "odd", "returns": "an answer"}, {"id": "good", "says": "Fine."})
    )

    outcome = project.keval("run", "eval.yaml", "--condition", "baseline")

    told = ("bad_transcript", "the agent returned str in place of a Transcript")
    assert (3, {"scripted/baseline/odd/1": told, "scripted/baseline/good/1": None}) == (outcome.code, failures(project))
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize(
    ("yields", "told"),
    [
        ("nothing", "a context yielded None in place of a Provision"),
        ("stranger", "which is not one of those it started with"),
    ],
)
def test_a_context_that_yields_something_else_fails_its_trial_alone(project: Project, yields: str, told: str) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"id": "odd", "context_yields": yields}, {"id": "good"}))

    outcome = project.keval("run", "eval.yaml", "--condition", "with_notes")

    found = failures(project)
    kind, message = found["scripted/with_notes/odd/1"] or ("", "")
    assert (3, "bad_context", True) == (outcome.code, kind, told in message)
    assert found["scripted/with_notes/good/1"] is None


def test_one_hook_that_raises_does_not_silence_the_others(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG + "plugins: [double/clumsy, double/diary]\n",
        questions_jsonl=lines({"id": "a"}, {"id": "b"}, {"id": "c"}),
    )

    told = (
        "the hook plugin 'double/clumsy' of keval-doubles 1.0 failed in keval_trial_finished: ConnectionError: nobody"
        " listens"
    )
    with pytest.warns(PluginWarning, match=told):
        outcome = project.keval("run", "eval.yaml", "--condition", "baseline")

    diary = (project.root / "diary.txt").read_text(encoding="utf-8").splitlines()
    assert (0, 3) == (outcome.code, sum(line.startswith("finished ") for line in diary))


def test_a_warning_about_a_plugin_is_shown_without_a_line_of_kevals(project: Project) -> None:
    project.write(eval_yaml=CONFIG + "plugins: [double/clumsy]\n", questions_jsonl=lines({"id": "a"}))

    outcome = project.spawn("run", "eval.yaml", "--condition", "baseline")

    warning = "warning: the hook plugin 'double/clumsy' of keval-doubles 1.0 failed in keval_trial_finished: "
    assert (0, True, False) == (outcome.code, warning in outcome.stderr, ".py:" in outcome.stderr)


def test_hooks_are_checked_by_validate_too(project: Project) -> None:
    config = CONFIG + "plugins:\n  - double/unknown-hook\n  - double/later\n  - double/wrong-argument\n"
    project.write(eval_yaml=config, questions_jsonl=lines({"id": "a"}))

    outcome = project.keval("validate", "eval.yaml")

    errors = outcome.stderr.splitlines()
    assert (2, 3) == (outcome.code, len(errors))
    assert errors[0].startswith("error: eval.yaml:10:5: a hook plugin does not fit this version of keval: unknown hook")
    assert "eval.yaml:11:5: double/later: keval_trial_finished is not awaited" in errors[1]
    assert errors[2].startswith("error: eval.yaml:12:5: a hook plugin does not fit")
    assert "trail" in errors[2]


def test_live_events_tell_what_happens_in_a_trial(project: Project) -> None:
    sample = {"id": "a", "calls": [{"name": "look", "result": "a cat"}], "seen": [{"name": "look", "result": "a cat"}]}
    project.write(eval_yaml=CONFIG + "plugins: [double/listener]\n", questions_jsonl=lines(sample))

    project.keval("run", "eval.yaml", "--condition", "with_notes")

    events = [json.loads(line) for line in (project.root / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    kinds = ["trial_started", "turn_started", "model_called", "tool_called", "tool_returned", "model_called", "said"]
    assert [*kinds, "trial_finished", "scored"] == [event["kind"] for event in events]
    assert {("scripted/with_notes/a/1", 1)} == {(event["trial"], event["attempt"]) for event in events}
    assert "a cat" == events[4]["data"]["result"]
    (score,) = open_run().scores()
    told = {"metric": score.metric, "value": score.score.value, "reason": score.score.reason, "repetition": 1}
    assert told.items() <= events[-1]["data"].items()


def test_content_that_an_agent_attaches_is_kept_beside_its_trial(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"id": "a", "attaches": "a picture"}))

    project.keval("run", "eval.yaml", "--condition", "baseline")

    (trial,) = open_run().trials()
    assert b"a picture" == open_run().blob(trial.output)


def test_tokens_that_were_not_reported_make_the_sum_unknown(project: Project) -> None:
    known = {
        "usage": {"input_tokens": 100, "output_tokens": 7},
        "calls": [{"name": "look"}],
        "seen": [{"name": "look"}],
    }
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl=lines({"id": "all", **known}, {"id": "part", **known, "usage_is_partial": True}),
    )

    outcome = project.keval("run", "eval.yaml", "--condition", "with_notes", "--json")

    tokens = {trial["sample"]: trial["transcript"]["usage"]["input_tokens"] for trial in project.lines("trials.jsonl")}
    assert {"all": 200, "part": None} == tokens
    usage = outcome.data["trials"][0]["usage"]
    assert (200, 14, 1) == (usage["input_tokens"], usage["output_tokens"], usage["unknown"])


def test_a_metric_that_blocks_is_called_in_threads(project: Project) -> None:
    samples = [{"id": str(number)} for number in range(4)]
    project.write(eval_yaml=CONFIG, questions_jsonl=lines(*samples))

    outcome = project.keval("run", "eval.yaml", "--condition", "baseline", "--metric", "crowd/meets", "--json")

    # Four calls wait for each other: one after the other, they would never meet.
    assert (0, 1.0) == (outcome.code, outcome.data["arms"][0]["mean"])


def test_a_metric_that_holds_up_all_others_is_named_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval.score.scoring._SLOW", 0.01)
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"id": "a"}, {"id": "b"}))

    with pytest.warns(PluginWarning) as warned:
        outcome = project.keval("run", "eval.yaml", "--condition", "baseline", "--metric", "double/slow")

    told = [str(warning.message) for warning in warned]
    assert (0, 1) == (outcome.code, len(told))
    assert told[0].startswith("the metric 'double/slow' of keval-doubles 1.0 held up all trials for 0.0 s; make")
    assert "`blocks: ClassVar[bool] = True`" in told[0]


def test_a_judges_timeout_is_retried(project: Project) -> None:
    config = CONFIG.replace("metrics: [double/length]", "judges: {reader: {hangs: true}}\nrubrics: [double/brevity]")
    project.write(
        eval_yaml=config.replace("timeout_seconds: 5", "timeout_seconds: 0.05"),
        questions_jsonl=lines({"id": "a", "level": 2}),
    )

    outcome = project.keval("run", "eval.yaml", "--condition", "baseline")

    (score,) = project.lines("scores.jsonl")
    attempts = [failure["kind"] for failure in score["judgement"]["attempts"]]
    failure = score["failure"]
    assert (3, ["timeout", "timeout"]) == (outcome.code, attempts)
    assert ("timeout", "no judgement within 0.05 s", None) == tuple(
        failure[key] for key in ("kind", "message", "traceback")
    )
