"""Replays of recorded runs: equal to them, without a model and a key, and telling of everything that is otherwise."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from keval.errors import PreflightError
from keval_replay.frames import traffic_file
from tests.conftest import ON_PATH, Outcome, Project

MODEL = {"model": "simulated/double/scripted"}
WORD = "correcthorsebattery"
VERDICT = {"double_brevity": {"reasoning": "It is short.", "score": 3}, "unverified_claims": []}
SAMPLES: Mapping[str, Mapping[str, Any]] = {
    "twice": {"question": "{script: [{text: 'I am {model}.'}]}", "turns": ["{script: [{text: 'Still {model}.'}]}"]},
    "busy": {"question": "{script: [{fault: {status: 429, retry_after: 0}}, {text: Now.}]}"},
    "down": {"question": "{script: [{fault: {status: 503}}, {fault: {status: 503}}, {text: Again.}]}"},
    "refused": {"question": "{script: [{fault: {status: 400}}]}"},
}
CONFIG: Mapping[str, Any] = {
    "name": "recorded",
    "dataset": {"path": "questions.yaml"},
    "agents": {"openai": {"api": "responses", **MODEL}, "anthropic": MODEL},
    "conditions": {"baseline": {"system_prompt": "Answer with the ${WORD} word."}},
    "metrics": ["double/length"],
    "judges": {"openai": MODEL, "anthropic": MODEL},
    "rubrics": ["double/brevity"],
    "plugins": ["double/facts"],
    "execution": {
        "num_repetitions": 2,
        "retry": {"initial_backoff_seconds": 0, "max_attempts": 2, "max_request_attempts": 2},
    },
}


def write(project: Project, name: str = "eval", **changes: Any) -> None:
    project.write(
        **{f"{name}_yaml": yaml.safe_dump({**CONFIG, **changes})},
        questions_yaml=yaml.safe_dump([{"id": name, **sample} for name, sample in SAMPLES.items()]),
        verdict_yaml=yaml.safe_dump([{"text": json.dumps(VERDICT)}]),
    )


def keval(project: Project, *args: str, **env: str | None) -> Outcome:
    path = os.pathsep.join([*ON_PATH, os.environ.get("PYTHONPATH", "")])
    return project.keval(*args, env={"PYTHONPATH": path, "KEVAL_DOUBLES_SCRIPT": "verdict.yaml", **env})


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run is kept that the tests of this module replay."""
    return tmp_path_factory.mktemp("shelf") / "recorded"


@pytest.fixture
def recorded(project: Project, simulated_here: None, shelf: Path) -> Project:
    """A run with follow-up messages, refused requests, attempts that failed and trials that did, in `recorded/`."""
    write(project)
    if not shelf.exists():
        outcome = keval(project, "run", "eval.yaml", "--record", WORD=WORD)
        assert 3 == outcome.code, outcome.stderr
        shutil.move(project.run_directory(), shelf)
    shutil.copytree(shelf, project.root / "recorded")
    return project


@pytest.fixture
def unplugged(recorded: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The recorded run, and nothing else: no config, no dataset, and no way to a model."""

    def connected(*args: object, **options: object) -> None:
        raise AssertionError("a replay connects to a model")

    monkeypatch.setattr("keval_gateway.run_gateway", connected)
    for path in recorded.root.glob("*.yaml"):
        path.unlink()
    return recorded


def replay(project: Project, *args: str, **env: str | None) -> Outcome:
    """Replay the recorded run into an empty results directory."""
    shutil.rmtree(project.root / "results", ignore_errors=True)
    return keval(project, "run", *args, "--replay", "recorded", **env)


def failures(project: Project) -> dict[str, dict[str, Any]]:
    return {line["id"]: line["failure"] for line in project.lines("trials.jsonl") if line["failure"] is not None}


def test_a_replay_needs_the_recording_only_and_equals_it(unplugged: Project) -> None:
    outcome = replay(unplugged, "-j", "1", WORD=None)

    run = unplugged.run_directory()
    told = keval(unplugged, "compare", "--exact", "recorded", str(run), "--times")
    assert (3, 0) == (outcome.code, told.code), outcome.stderr + told.stdout
    entry = unplugged.read("manifest.json")["replay"]
    assert ("fail", 0, 0, []) == (entry["misses"], entry["live_trials"], entry["live_judgements"], entry["changes"])
    assert {"truth": "sun"} == unplugged.lines("samples.jsonl")[0]["facts"]
    written = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert (False, False) == (WORD.encode() in written, b".recording.invalid" in written)


def test_a_changed_prompt_is_named_by_the_trials_that_miss(recorded: Project) -> None:
    write(recorded, conditions={"baseline": {"system_prompt": "Reply with the ${WORD} word."}})

    outcome = replay(recorded, "eval.yaml", WORD=None)

    found = failures(recorded)
    assert (3, {("replay", "replay_miss")}) == (
        outcome.code,
        {(failure["stage"], failure["kind"]) for failure in found.values()},
    )
    assert 16 == len(found)
    message = found["anthropic/baseline/twice/1"]["message"]
    assert "the system prompt" in message
    assert "-Answer with the [secret] word." in message
    assert "+Reply with the [secret] word." in message
    (changed,) = recorded.read("manifest.json")["replay"]["changes"]
    assert changed.startswith("conditions.baseline.system_prompt: was Answer")
    assert "`--replay-misses live`" in outcome.stderr
    assert {"-Answer with the [secret] word.", "+Reply with the [secret] word."} < {*outcome.stderr.splitlines()}
    durations = [trial["transcript"]["duration"] for trial in recorded.lines("trials.jsonl")]
    assert [None] * 16 == durations


def test_what_misses_is_asked_live_and_recorded_with_the_rest(recorded: Project) -> None:
    write(recorded, agents={**CONFIG["agents"], "anthropic": {**MODEL, "temperature": 0.5}})

    outcome = replay(recorded, "eval.yaml", "--replay-misses", "live", WORD=WORD)

    entry = recorded.read("manifest.json")["replay"]
    assert (3, 8, 0) == (outcome.code, entry["live_trials"], entry["live_judgements"]), outcome.stderr
    assert {400} == {int(failure["kind"][-3:]) for failure in failures(recorded).values()}
    run = shutil.move(recorded.run_directory(), recorded.root / "again")
    shutil.rmtree(recorded.root / "results")
    again = keval(recorded, "run", "--replay", str(run), WORD=None)
    told = keval(recorded, "compare", "--exact", str(run), str(recorded.run_directory()), "--times")
    assert (3, 0) == (again.code, told.code), again.stderr + told.stdout


def test_a_judge_whose_rubric_changed_misses_and_all_else_is_scored(recorded: Project) -> None:
    rubric = {"brevity": {"instructions": "How short is it?", "levels": {1: "long", 2: "middling", 3: "short"}}}
    write(recorded, rubrics=[rubric])

    outcome = replay(recorded, "eval.yaml", WORD=None)

    assert 3 == outcome.code
    assert "`--replay-misses live`" in outcome.stderr
    assert "How short is it?" in outcome.stderr
    scores = recorded.lines("scores.jsonl")
    assert {"replay_miss"} == {line["failure"]["kind"] for line in scores if line["judge"]}
    assert {None} == {line["failure"] for line in scores if not line["judge"]}


def test_what_the_recording_does_not_have_is_left_out_with_a_notice(recorded: Project) -> None:
    write(recorded, agents={**CONFIG["agents"], "other": {"type": "openai", **MODEL}})

    outcome = replay(recorded, "eval.yaml", "--repetitions", "3", "--sample-id", "twice", WORD=None)

    assert (0, 4) == (outcome.code, len(recorded.lines("trials.jsonl")))
    assert "left out: the agent other" in outcome.stderr


def test_a_trial_that_was_never_finished_is_left_out(unplugged: Project) -> None:
    trials = unplugged.root / "recorded" / "trials.jsonl"
    lines = trials.read_bytes().splitlines(keepends=True)
    trials.write_bytes(b"".join(lines[1:]))

    outcome = replay(unplugged, "--judge", "openai", WORD=None)

    assert (3, len(lines) - 1) == (outcome.code, len(unplugged.lines("trials.jsonl")))


def test_changed_questions_are_told_and_the_recorded_ones_are_asked(recorded: Project) -> None:
    samples = {**SAMPLES, "twice": {"question": "{script: [{text: Another.}]}"}}
    recorded.write(questions_yaml=yaml.safe_dump([{"id": name, **sample} for name, sample in samples.items()]))

    outcome = replay(recorded, "eval.yaml", WORD=None)

    told = keval(recorded, "compare", "--exact", "recorded", str(recorded.run_directory()), "--json")
    changes = recorded.read("manifest.json")["replay"]["changes"]
    assert (3, True) == (outcome.code, any(line.startswith("sample twice: it asks something else") for line in changes))
    assert 0 == told.data["trials"]["different"]


def test_questions_that_changed_or_are_new_are_asked_live(recorded: Project) -> None:
    samples = {
        **SAMPLES,
        "twice": {"question": "{script: [{text: Another.}]}"},
        "new": {"question": "{script: [{text: New.}]}"},
    }
    recorded.write(questions_yaml=yaml.safe_dump([{"id": name, **sample} for name, sample in samples.items()]))

    outcome = replay(recorded, "eval.yaml", "--replay-misses", "live", "--repetitions", "3", WORD=WORD)

    entry = recorded.read("manifest.json")["replay"]
    # Two agents: three repetitions of each of the two questions, and the third one of the other three.
    assert (3, 18) == (outcome.code, entry["live_trials"])
    lines = recorded.lines("samples.jsonl")
    assert {name: sample["question"] for name, sample in samples.items()} == {
        line["id"]: line["question"] for line in lines
    }
    assert {"sun"} == {line["facts"]["truth"] for line in lines}


def test_no_hook_plugin_prepares_what_is_replayed(recorded: Project) -> None:
    write(recorded, plugins=["double/broken-facts"])

    outcome = replay(recorded, "eval.yaml", WORD=None)

    assert 3 == outcome.code
    assert {"truth": "sun"} == recorded.lines("samples.jsonl")[0]["facts"]


def test_a_miss_that_cannot_be_asked_live_ends_the_run_with_the_reason(
    recorded: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*args: object, **options: object) -> None:
        raise PreflightError("no key is set")

    monkeypatch.setattr("keval_gateway.run_gateway", down)
    write(recorded, conditions={"baseline": {"system_prompt": "Reply with the ${WORD} word."}})

    outcome = replay(recorded, "eval.yaml", "--replay-misses", "live", WORD=WORD)

    assert 2 == outcome.code
    assert "requests that are not in the recording cannot be made live either:\n  no key is set" in outcome.stderr


def test_what_may_be_asked_live_needs_its_secrets(unplugged: Project) -> None:
    outcome = replay(unplugged, "--replay-misses", "live", WORD=None)

    assert 2 == outcome.code
    assert "the environment variable WORD is not set" in outcome.stderr


def test_servers_that_agents_connect_to_themselves_are_not_replayed(recorded: Project) -> None:
    manifest = json.loads((recorded.root / "recorded" / "manifest.json").read_text(encoding="utf-8"))
    write(
        recorded,
        contexts={"direct": {"type": "stdio", "command": "python", "tap": False}},
        conditions={"baseline": {**manifest["config"]["conditions"]["baseline"], "contexts": ["direct"]}},
    )

    outcome = replay(recorded, "eval.yaml", WORD=None)

    assert 2 == outcome.code
    assert "server 'direct': agents connect to it directly" in outcome.stderr


def test_a_replay_does_not_go_on(unplugged: Project) -> None:
    replay(unplugged, "--sample-id", "twice", WORD=None)

    outcome = keval(unplugged, "resume", "latest")

    assert 2 == outcome.code
    assert "replay again" in outcome.stderr


def _unrecorded(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    (run / "manifest.json").write_text(json.dumps({**manifest, "recording": None}), encoding="utf-8")


def _damaged(run: Path) -> None:
    content = bytearray(traffic_file(run).read_bytes())
    content[len(content) // 2] ^= 0xFF
    traffic_file(run).write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_unrecorded, "has no recording; `keval run --record` makes one"),
        (_damaged, "is damaged"),
    ],
)
def test_a_recording_that_cannot_be_played_is_an_error(unplugged: Project, spoil: Any, told: str) -> None:
    spoil(unplugged.root / "recorded")

    outcome = replay(unplugged, WORD=None)

    assert 2 == outcome.code
    assert told in outcome.stderr
    assert not (unplugged.root / "results").exists()


def test_a_recording_of_another_evaluation_is_an_error(recorded: Project) -> None:
    write(recorded, agents={"stranger": {"type": "openai", **MODEL}})

    outcome = replay(recorded, "eval.yaml", WORD=None)

    assert 2 == outcome.code
    assert "is of another evaluation: it has the agents anthropic, openai" in outcome.stderr


def test_without_a_replay_there_must_be_a_config(project: Project) -> None:
    outcome = project.keval("run")

    assert (2, True) == (outcome.code, "CONFIG" in outcome.stderr)
