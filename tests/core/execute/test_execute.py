"""Running trials: the grid, failures as data, retries, timeouts and what is kept of them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from typing import Any

import pytest
from importlib_metadata import version

from keval.store.journal import Journal
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  scripted: {}
conditions:
  baseline: {}
metrics: [double/length]
execution: {timeout_seconds: 5, retry: {initial_backoff_seconds: 0}}
"""


def lines(*samples: Mapping[str, Any]) -> str:
    return "".join(json.dumps({"question": "How?", **sample}) + "\n" for sample in samples)


def test_every_cell_of_the_grid_is_one_trial(project: Project) -> None:
    project.write(
        eval_yaml="""
        name: grid
        dataset: {path: questions.jsonl}
        agents:
          scripted: {}
          other: {type: scripted, suffix: "!"}
        contexts: {notes: {text: "Read. "}}
        conditions:
          baseline: {}
          with_notes: {contexts: [notes], system_prompt: "Speak {{ metadata.tongue }}."}
        metrics: [double/length]
        execution: {num_repetitions: 2}
        """,
        questions_jsonl=lines({"id": "a", "tongue": "Finnish"}, {"id": "b", "tongue": "Polish"}),
    )

    outcome = project.keval("run", "eval.yaml", "--json")

    trials = project.lines("trials.jsonl")
    expected = {
        f"{agent}/{condition}/{sample}/{repetition}"
        for agent in ("scripted", "other")
        for condition in ("baseline", "with_notes")
        for sample in ("a", "b")
        for repetition in (1, 2)
    }
    assert (0, expected) == (outcome.code, {trial["id"] for trial in trials})
    outputs = {trial["id"]: trial["output"] for trial in trials}
    assert "How?!" == outputs["other/baseline/a/1"]
    assert "Speak Polish.\n\nRead.How?" == outputs["scripted/with_notes/b/2"]


def test_a_run_directory_has_what_the_design_says(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"id": "a", "answer": "so"}))

    project.keval("run", "eval.yaml")

    files = sorted(path.name for path in project.run_directory().glob("[!.]*"))
    derived = ["scores.index", "summary.json", "trials.index"]
    assert sorted(["manifest.json", "samples.jsonl", "scores.jsonl", "trials.jsonl", *derived]) == files
    (trial,), (score,), manifest = (
        project.lines("trials.jsonl"),
        project.lines("scores.jsonl"),
        project.read("manifest.json"),
    )
    assert {"id", "sample", "agent", "condition", "repetition", "transcript", "failure"} <= trial.keys()
    assert {"messages", "tool_calls", "usage", "model_calls", "duration"} <= trial["transcript"].keys()
    wanted = {"trial", "sample", "agent", "condition", "repetition", "metric", "value", "neutral", "reason", "details"}
    assert wanted <= score.keys()
    assert ("eval", version("keval-core"), "keval-doubles 1.0") == (
        manifest["evaluation"],
        manifest["versions"]["keval"],
        manifest["plugins"]["keval.metrics:double/length"],
    )
    # What a plugin is built on may change an answer, too.
    assert {"keval", "keval-doubles", "hypothesis", "python"} <= manifest["versions"].keys()
    assert 64 == len(manifest["dataset"]["sha256"])


FAILURES: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "told": ({"fail": "no luck"}, ("agent", "told", "no luck")),
    "a bug": ({"fail": "bug"}, ("agent", "ZeroDivisionError", "division by zero")),
    "in a group": ({"fail": "grouped"}, ("model", "http_400", "bad request")),
    "context": ({"context_down": True}, ("mcp", "server_lost", "the server went away")),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_data_and_ends_only_its_trial(project: Project, case: str) -> None:
    script, failure = FAILURES[case]
    config = CONFIG.replace("baseline: {}", "baseline: {contexts: [notes]}") + "contexts: {notes: {}}\n"
    project.write(eval_yaml=config, questions_jsonl=lines({"id": "bad", **script}, {"id": "good"}))

    outcome = project.keval("run", "eval.yaml", "--json")

    trials = {trial["sample"]: trial for trial in project.lines("trials.jsonl")}
    found = trials["bad"]["failure"]
    assert (3, failure) == (outcome.code, (found["stage"], found["kind"], found["message"]))
    assert (None, "How?") == (trials["good"]["failure"], trials["good"]["output"])
    assert ["good"] == [score["sample"] for score in project.lines("scores.jsonl")]
    (arm,) = outcome.data["arms"]
    assert (1, 0.04) == (arm["n"], arm["mean"])


def test_a_failed_trial_keeps_its_partial_transcript_and_traceback(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"fail": "bug", "calls": [{"name": "look", "result": "x"}]}))

    project.keval("run", "eval.yaml")

    (trial,) = project.lines("trials.jsonl")
    assert ["look"] == [call["name"] for call in trial["transcript"]["tool_calls"]]
    assert "ZeroDivisionError: division by zero" in trial["failure"]["traceback"]


def test_an_all_failed_run_exits_3_and_has_no_mean(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"fail": "no"}))

    outcome = project.keval("run", "eval.yaml", "--json")

    (arm,) = outcome.data["arms"]
    assert (3, 0, None) == (outcome.code, arm["n"], arm["mean"])
    assert {"agent: told": 1} == outcome.data["trials"][0]["failures"]


def test_a_busy_model_is_asked_again_and_every_attempt_is_kept(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"busy": 2}))

    outcome = project.keval("run", "eval.yaml", "--json")

    (trial,) = project.lines("trials.jsonl")
    assert (0, None, 2) == (outcome.code, trial["failure"], len(trial["attempts"]))
    assert "rate_limit" == trial["attempts"][0]["failure"]["kind"]
    assert 1 == outcome.data["trials"][0]["retried"]


PROMPTED = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {notes: {text: "Read the notes. "}}
conditions:
  baseline: {}
  with_notes: {contexts: [notes], system_prompt: "Speak {{ metadata.tongue }}."}
metrics: [double/length]
execution: {max_recorded_bytes: 1000, keep_large_results: true, retry: {initial_backoff_seconds: 0}}
"""


def test_a_trial_keeps_its_system_prompt_once_and_as_it_was_rendered(project: Project) -> None:
    asked: list[dict[str, Any]] = [{"id": name, "tongue": "Finnish"} for name in ("calm", "busy", "down", "long")]
    asked[1] |= {"busy": 1}
    asked[2] |= {"context_down": True}
    asked[3] |= {"tongue": "Finnish " * 200}
    project.write(eval_yaml=PROMPTED, questions_jsonl=lines(*asked))

    project.keval("run", "eval.yaml", "-q")

    trials = {trial["id"].removeprefix("scripted/"): trial for trial in project.lines("trials.jsonl")}
    prompts = {name: trial["transcript"]["instructions"] for name, trial in trials.items()}
    rendered = "Speak Finnish.\n\nRead the notes."
    assert ("", rendered, rendered) == tuple(
        prompts[name] for name in ("baseline/calm/1", "with_notes/calm/1", "with_notes/busy/1")
    )
    assert [None] == [each["transcript"]["instructions"] for each in trials["with_notes/busy/1"]["attempts"]]
    # A context that did not open leaves the prompt unknown, which is not the same as empty.
    assert ("server_lost", None) == (trials["with_notes/down/1"]["failure"]["kind"], prompts["with_notes/down/1"])
    assert re.fullmatch(r"Speak (Finnish )+.*… \(\d+ bytes, SHA-256 [0-9a-f]{64}\)", prompts["with_notes/long/1"])


def test_a_trial_says_when_its_model_answered_and_its_tools_were_called(project: Project) -> None:
    calls = [{"name": "find", "result": "found", "sent": False}]
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"calls": calls}))
    before = time.time()

    project.keval("run", "eval.yaml", "-q")

    (trial,) = project.lines("trials.jsonl")
    transcript = trial["transcript"]
    (asked,), (first, second) = [call["at"] for call in transcript["tool_calls"]], transcript["replies"]
    assert before <= transcript["started"] <= time.time()
    assert 0 <= first <= asked <= second <= transcript["duration"]


def test_the_manifest_has_the_options_of_metrics_and_judges(project: Project) -> None:
    judged = "rubrics: [double/brevity]\njudges: {strict: {level: 3}}\n"
    config = CONFIG.replace("[double/length]", "[{double/length: {limit: 20}}]") + judged
    project.write(eval_yaml=config, questions_jsonl=lines({}))
    project.keval("run", "eval.yaml", "-q")
    project.keval("score", "latest", "--metric", "double/characters")

    manifest = project.read("manifest.json")

    options = {entry["metric"]: (entry["options"], entry["defaults"]) for entry in manifest["scorers"]}
    strict = manifest["judges"]["strict"]
    assert {
        "double/length": ({"limit": 20}, {}),
        "double/brevity": ({}, {}),
        "double/characters": ({}, {"each": 3.0}),
    } == options
    assert ({"level": 3}, {"down": False, "busy": 0, "odd": "", "refuses": ""}) == (
        strict["options"],
        strict["defaults"],
    )


def test_a_trial_that_hangs_fails_at_its_timeout_and_is_attempted_again(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG.replace("timeout_seconds: 5", "timeout_seconds: 0.05"),
        questions_jsonl=lines({"id": "hangs", "hang": True}, {"id": "runs"}),
    )

    outcome = project.keval("run", "eval.yaml")

    trials = {trial["sample"]: trial for trial in project.lines("trials.jsonl")}
    attempts = [attempt["failure"]["kind"] for attempt in trials["hangs"]["attempts"]]
    assert (3, "timeout", ["timeout"] * 2) == (outcome.code, trials["hangs"]["failure"]["kind"], attempts)
    assert "no answer within 0.05 s" == trials["hangs"]["failure"]["message"]
    assert trials["runs"]["failure"] is None


def test_a_conversation_is_one_trial_with_its_turns_apart(project: Project) -> None:
    sample = {"question": "Weather in Oslo?", "turns": ["And tomorrow?", "Thanks!"]}
    project.write(eval_yaml=CONFIG, questions_jsonl=lines(sample))

    project.keval("run", "eval.yaml")

    (trial,) = project.lines("trials.jsonl")
    spoken = [(message["turn"], message["role"], message["text"]) for message in trial["transcript"]["messages"]]
    assert [
        (0, "user", "Weather in Oslo?"),
        (0, "assistant", "Weather in Oslo?"),
        (1, "user", "And tomorrow?"),
        (1, "assistant", "And tomorrow?"),
        (2, "user", "Thanks!"),
        (2, "assistant", "Thanks!"),
    ] == spoken
    assert ("Thanks!", 3) == (trial["output"], len(trial["transcript"]["turn_durations"]))


def test_text_that_no_utf8_file_can_hold_does_not_lose_the_trial(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"says": "half ", "half_a_pair": True}))

    outcome = project.keval("run", "eval.yaml")

    (trial,) = project.lines("trials.jsonl")
    assert (0, "half ?") == (outcome.code, trial["output"])


def test_an_agent_that_can_only_do_so_much_is_waited_for_before_the_clock_runs(project: Project) -> None:
    config = """
    dataset: {path: questions.jsonl}
    agents: {narrow: {}}
    execution: {max_concurrent: 4, timeout_seconds: 0.4}
    metrics: [double/length]
    """
    project.write(eval_yaml=config, questions_jsonl=lines(*({"id": str(number)} for number in range(4))))

    outcome = project.keval("run", "eval.yaml")

    assert (0, ["done"] * 4) == (outcome.code, [trial["output"] for trial in project.lines("trials.jsonl")])


def test_an_agent_cancelled_from_inside_is_a_failure_and_no_trial_is_lost(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"id": "a"}, {"id": "b", "cancelled": True}, {"id": "c"}))

    outcome = project.keval("run", "eval.yaml", "-j", "1")

    kinds = {trial["sample"]: (trial["failure"] or {}).get("kind") for trial in project.lines("trials.jsonl")}
    assert (3, {"a": None, "b": "cancelled", "c": None}) == (outcome.code, kinds)


def test_arguments_nested_too_deeply_are_cut_and_the_trial_is_kept(project: Project) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    call = {"name": "look", "arguments": deep, "result": "x"}
    project.write(eval_yaml=CONFIG, questions_jsonl=lines({"calls": [call]}))

    outcome = project.keval("run", "eval.yaml")

    (trial,) = project.lines("trials.jsonl")
    assert (0, True) == (outcome.code, "nested too deeply to be kept" in json.dumps(trial["transcript"]))


def test_a_trial_is_written_after_the_content_that_it_shares_with_another(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, append, found = os.fsync, Journal.append, []

    def slow(file: int) -> None:
        time.sleep(0.02)  # a disk that takes its time, so that the trials meet
        sync(file)

    async def noted(journal: Journal, *trial: Any) -> None:
        found.append([path.stat().st_size for path in project.root.glob("results/*/*/blobs/[!.]*")])
        await append(journal, *trial)

    monkeypatch.setattr(os, "fsync", slow)
    monkeypatch.setattr(Journal, "append", noted)
    call = {"name": "look", "result": "x" * 5_000}
    project.write(
        eval_yaml=CONFIG.replace("execution: {", "execution: {max_recorded_bytes: 1000, keep_large_results: true, "),
        questions_jsonl=lines(*({"id": name, "calls": [call]} for name in "abcdef")),
    )

    outcome = project.keval("run", "eval.yaml")

    assert (0, [[5_000]] * 6) == (outcome.code, found), outcome.stderr


def test_repetitions_differ_in_seed_and_arms_do_not(project: Project) -> None:
    config = CONFIG.replace("baseline: {}", "one: {}\n  two: {}") + "seed: 7\n"
    config = config.replace("\nseed: 7\n", "\n").replace("execution: {", "execution: {num_repetitions: 2, seed: 7, ")
    project.write(eval_yaml=config, questions_jsonl=lines({"id": "a", "tells_context": True}))

    project.keval("run", "eval.yaml")

    told = [trial["output"].split() for trial in project.lines("trials.jsonl")]
    assert {("one", "1", "1"), ("one", "2", "1"), ("two", "1", "1"), ("two", "2", "1")} == {tuple(t[:3]) for t in told}
    seeds = {(condition, repetition): seed for condition, repetition, _, seed in told}
    assert seeds["one", "1"] == seeds["two", "1"] != seeds["one", "2"] == seeds["two", "2"]


def test_an_agent_that_is_deaf_to_cancellation_has_timed_out_all_the_same(project: Project) -> None:
    config = CONFIG.replace("timeout_seconds: 5", "timeout_seconds: 0.05")
    project.write(eval_yaml=config, questions_jsonl=lines({"deaf": True}))

    outcome = project.keval("run", "eval.yaml")

    (trial,) = project.lines("trials.jsonl")
    assert (3, "timeout") == (outcome.code, trial["failure"]["kind"])
