"""Recordings of whole runs: every request of every agent and judge, on disk before what it led to, and shown again."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from keval.records.cassettes import ModelTraffic
from keval_replay.frames import FrameKey, Frames, traffic_file
from keval_replay.traffic_lines import read_endpoint, read_traffic
from tests.conftest import ON_PATH, Outcome, Project, serve_here
from tests.stdio_server import ENVIRONMENT

MODEL = {"model": "simulated/double/scripted"}
AGENTS: dict[str, dict[str, Any]] = {
    "gadk": {"type": "gadk", **MODEL},
    "ms": {"type": "ms", **MODEL},
    "openai": {"type": "openai", "api": "responses", **MODEL},
    "anthropic": {"type": "anthropic", **MODEL},
}
JUDGES = {"openai": MODEL, "anthropic": MODEL}
VERDICT = {"double_brevity": {"reasoning": "It is short.", "score": 3}, "unverified_claims": []}
TWICE = {"question": "{script: [{text: 'I am {model}.'}]}", "turns": ["{script: [{text: 'Still {model}.'}]}"]}
BUSY = {"question": "{script: [{fault: {status: 429, retry_after: 0}}, {text: Now.}]}"}
CONFIG = {
    "dataset": {"path": "questions.yaml"},
    "agents": AGENTS,
    "conditions": {"baseline": {}},
    "judges": JUDGES,
    "rubrics": ["double/brevity"],
    "middleware": [
        {"double/counting": {"journal": "counted.jsonl"}},
        {"double/rewriting": {"old": "Still", "new": "I still am"}},
    ],
    "execution": {"retry": {"initial_backoff_seconds": 0, "max_attempts": 2}},
}
MORTAL = """
name: mortal
dataset: {path: questions.yaml}
agents: {mortal: {type: double/mortal, journal: journal.txt, fails: [c], healed: healed.txt}}
conditions: {baseline: {}}
metrics: [double/length]
execution: {max_concurrent: 1, retry: {max_attempts: 1}}
"""


def keval(project: Project, *args: str) -> Outcome:
    path = os.pathsep.join([*ON_PATH, os.environ.get("PYTHONPATH", "")])
    env = {"PYTHONPATH": path, "KEVAL_DOUBLES_SCRIPT": "verdict.yaml", "KEVAL_DOUBLES_JOURNAL": "answered.jsonl"}
    return project.keval(*args, env=env)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of four agents and two judges, with follow-up messages and refused requests."""
    project = Project(tmp_path_factory.mktemp("made"))
    project.write(
        eval_yaml=yaml.safe_dump(CONFIG),
        questions_yaml=yaml.safe_dump([{"id": "twice", **TWICE}, {"id": "busy", **BUSY}]),
        verdict_yaml=yaml.safe_dump([{"text": json.dumps(VERDICT)}]),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        serve_here(patch)
        outcome = keval(project, "run", "eval.yaml", "--record")
    assert 0 == outcome.code, outcome.stderr
    return project.root


@pytest.fixture
def ran(made: Path, project: Project, simulated_here: None) -> Project:
    shutil.copytree(made, project.root, dirs_exist_ok=True)
    return project


@pytest.fixture
def mortal(project: Project) -> Project:
    """An evaluation whose agent asks no model, and can be killed."""
    questions = [{"id": name, "question": f"{name}?"} for name in "abcdefgh"]
    project.write(eval_yaml=MORTAL, questions_yaml=yaml.safe_dump(questions))
    return project


def frames(project: Project) -> Frames:
    return Frames(traffic_file(project.run_directory()))


def traffic(found: Frames, key: FrameKey) -> Iterator[ModelTraffic]:
    for each in found.read(key, read_traffic):
        assert isinstance(each, ModelTraffic)
        yield each


def recorded_trials(project: Project) -> set[str | None]:
    return {key.trial for key in frames(project).keys if key.role == "agent"}


def test_every_request_of_every_agent_and_judge_is_recorded(ran: Project) -> None:
    found, trials = frames(ran), {line["id"]: line for line in ran.lines("trials.jsonl")}
    counted = [json.loads(line) for line in (ran.root / "counted.jsonl").read_text(encoding="utf-8").splitlines()]

    agents = {FrameKey("agent", trial=trial) for trial in trials}
    judges = {FrameKey("judge", trial=trial, judge=judge, repetition=1) for trial in trials for judge in JUDGES}
    (endpoint,) = {*found.keys} - agents - judges
    (known,) = found.read(endpoint, read_endpoint)
    assert ("simulated/double/scripted", True, True) == (known.model, known.simulated, known.wants_trial)
    assert {"openai-chat", "openai-responses", "anthropic", "gemini"} == {*known.urls}
    seen = Counter(
        (each["role"], each["label"], each["trial"], each["attempt"], entry["wire"], entry["path"], entry["status"])
        for entry in counted
        if entry["event"] == "request" and (each := entry["asker"])
    )
    kept = [each for key in agents | judges for each in traffic(found, key)]
    assert seen == Counter(
        (who.role, who.label, who.trial, who.attempt, each.request.wire, each.request.path, each.status)
        for each, who in ((each, each.asker) for each in kept)
    )
    assert [True] * len(kept) == [each.asker == each.request.asker and not each.request.headers for each in kept]


def test_a_trial_has_its_requests_and_replies_byte_for_byte_in_their_order(ran: Project) -> None:
    found = frames(ran)

    for trial in ran.lines("trials.jsonl"):
        kept = [*traffic(found, FrameKey("agent", trial=trial["id"]))]
        assert [(1, 2), (3, 4)] == [(each.began, each.ended) for each in kept]
        assert [429 if "busy" in trial["id"] else 200, 200] == [each.status for each in kept]
        request = ran.run_directory() / "blobs" / trial["transcript"]["request"]
        assert request.read_bytes() == kept[0].request.body
        assert not any(b"Still" in each.request.body for each in kept)  # what a middleware made of it was sent
        assert trial["output"].encode() in b"".join(kept[-1].chunks)
        assert all(each.headers["content-type"] == "application/json" for each in kept)
        assert all(each.at and 0 < (each.seconds or 0) < 60 for each in kept)
        waits = [each.headers.get("retry-after") for each in kept]
        assert ["0" if "busy" in trial["id"] else None, None] == waits


def test_the_manifest_says_since_when_a_run_is_recorded(ran: Project) -> None:
    manifest = ran.read("manifest.json")

    assert {"since": manifest["started"], "samples": []} == manifest["recording"]


def test_scoring_again_goes_on_with_the_recording(ran: Project) -> None:
    key = FrameKey("judge", trial="ms/baseline/twice/1", judge="anthropic", repetition=1)
    other = FrameKey("judge", trial="ms/baseline/twice/1", judge="openai", repetition=1)
    before = frames(ran)

    outcome = keval(ran, "score", "latest", "--judge", "anthropic")

    now = frames(ran)
    assert (0, {*before.keys}) == (outcome.code, {*now.keys}), outcome.stderr
    assert before.raw(other) == now.raw(other)
    (first,), (again,) = traffic(before, key), traffic(now, key)
    assert (first.at or 0) < (again.at or 0)
    assert first.request.body == again.request.body


def test_traffic_is_shown_as_it_was_recorded(ran: Project) -> None:
    data = keval(ran, "show", "latest", "--trial", "openai/baseline/busy/1", "--traffic").data

    assert [429, 200] == [each["status"] for each in data["traffic"]]
    assert [("anthropic", 1, 1), ("openai", 1, 1)] == [
        (each["judge"], each["repetition"], len(each["traffic"])) for each in data["judgements"]
    ]


def test_a_trial_that_is_on_disk_has_its_traffic_there_even_if_keval_is_killed(mortal: Project) -> None:
    assert -9 == mortal.fork("run", "eval.yaml", "--record", env={"MORTAL_DIES_AFTER": "5"}).code
    done = {line["id"] for line in mortal.lines("trials.jsonl")}
    recorded = recorded_trials(mortal)

    outcome = mortal.keval("resume", "latest")

    assert 4 <= len(done)
    assert done <= recorded
    assert (3, 8) == (outcome.code, len(recorded_trials(mortal))), outcome.stderr


def test_a_run_can_be_recorded_from_a_resumption_on(mortal: Project) -> None:
    assert 3 == mortal.keval("run", "eval.yaml").code
    without = mortal.keval("show", "latest", "--trial", "mortal/baseline/a/1", "--traffic")

    outcome = mortal.keval("resume", "latest", "--retry-failed", "--record")

    assert 3 == outcome.code, outcome.stderr
    manifest = mortal.read("manifest.json")
    assert manifest["resumed"][0]["at"] == manifest["recording"]["since"]
    assert {"mortal/baseline/c/1"} == recorded_trials(mortal)
    earlier = mortal.keval("show", "latest", "--trial", "mortal/baseline/a/1", "--traffic")
    assert "has no recording; `keval run --record` makes one" in without.stderr
    assert f"has no traffic of 'mortal/baseline/a/1': it began at {manifest['recording']['since']}" in earlier.stderr


def test_a_server_that_no_tap_watches_is_named(project: Project) -> None:
    script = "from tests.stdio_server import Tool, serve; serve('it', lambda: {'tool': Tool(lambda *_: [])})"
    server = {"type": "stdio", "command": sys.executable, "args": ["-c", script], "tap": False}
    config = {
        "dataset": {"path": "questions.yaml"},
        "agents": {"scripted": {}},
        "contexts": {"direct": {**server, "env": ENVIRONMENT}},
        "conditions": {"direct": {"contexts": ["direct"]}},
        "metrics": ["double/length"],
    }
    project.write(eval_yaml=yaml.safe_dump(config), questions_yaml=yaml.safe_dump([{"id": "a", "question": "a?"}]))

    with pytest.warns(RuntimeWarning, match="server 'direct': agents connect to it directly, so nothing of it"):
        outcome = project.keval("run", "eval.yaml", "--record")

    assert 0 == outcome.code, outcome.stderr


def test_a_recording_that_is_damaged_is_not_gone_on_with(mortal: Project) -> None:
    assert 3 == mortal.keval("run", "eval.yaml", "--record").code
    path = traffic_file(mortal.run_directory())
    damaged = path.read_bytes().replace(b'"bytes":', b'"bytes":9', 1)
    path.write_bytes(damaged)

    resumed = mortal.keval("resume", "latest", "--retry-failed")
    shown = mortal.keval("show", "latest", "--trial", "mortal/baseline/a/1", "--traffic")

    assert [2, 2] == [resumed.code, shown.code]
    told = f"{Path('recording', 'traffic.jsonl.zst')}: the frame at byte 0 is damaged: "
    assert [True, True] == [told in outcome.stderr for outcome in (resumed, shown)]
    assert damaged == path.read_bytes()


def test_a_trial_whose_traffic_cannot_be_written_is_not_written(
    mortal: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: object, frames: bytes) -> None:
        if b"mortal/baseline/" in frames:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("keval_replay.frames.write_all", full)

    outcome = mortal.keval("run", "eval.yaml", "--record")

    assert (2, []) == (outcome.code, mortal.lines("trials.jsonl"))
    path = traffic_file(mortal.run_directory().relative_to(mortal.root))
    assert f"error: {path} cannot be written: No space left on device" in outcome.stderr
