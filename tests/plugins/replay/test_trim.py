"""`keval record trim`: a part of a recorded run as a run of its own, whole in itself and without the rest."""

from __future__ import annotations

import json
import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from keval.records.transcript import Blob
from keval.store.run import Run
from keval_replay.frames import FrameKey, Frames, traffic_file
from tests.conftest import Project
from tests.reviewing import review

CONFIG: dict[str, Any] = {
    "name": "asked",
    "dataset": {"path": "questions.yaml"},
    "agents": {
        "one": {"type": "openai", "model": "simulated/any"},
        "two": {"type": "anthropic", "model": "simulated/any"},
    },
    "conditions": {"baseline": {}, "terse": {"system_prompt": "Be terse."}},
    "metrics": ["basic/turns"],
    "execution": {"num_repetitions": 2},
    "gates": ["failures <= 5%"],
}
IDS = ["a", "b, with a comma", "c"]


@pytest.fixture
def recorded(project: Project, simulated_here: None) -> Run:
    project.write(
        eval_yaml=yaml.safe_dump(CONFIG),
        questions_yaml=yaml.safe_dump([{"id": name, "question": f"What is {name}?"} for name in IDS]),
    )
    outcome = project.keval("run", "eval.yaml", "--record", "-q")
    assert 0 == outcome.code, outcome.stderr
    return Run(project.run_directory())


def keep_artifact(run: Run, trial: str, content: bytes) -> str:
    """Have a trial keep an artifact, as one with a workspace does; returns its SHA-256."""
    blob = Blob.of(content, "text/plain")
    (run.path / "blobs" / blob.sha256).write_bytes(content)
    lines = [json.loads(line) for line in run.trials_file.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["id"] == trial:
            kept = {"path": "a.txt", "size": len(content), "sha256": blob.sha256}
            line["transcript"]["end_state"] = {"artifacts": [kept]}
    run.trials_file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return blob.sha256


DAMAGED: dict[str, bytes] = {
    "no JSON": b'{"id": "a", "trial\n',
    "another type": b"5\n",
    "a lack": b"{}\n",
    "no UTF-8": b"\xff\xfe\n",
    "a NUL": b"\0\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [[], ["--samples", "a", "--agent", "one"]], ids=["all", "some"])
def test_a_damaged_run_is_told_at_its_line_and_leaves_no_half_of_a_copy(
    project: Project, recorded: Run, wanted: list[str]
) -> None:
    recorded.reviews_file.append([review(recorded, "one/terse/a/1", note="good")])

    for name in ("samples.jsonl", "trials.jsonl", "scores.jsonl", "reviews.jsonl"):
        file = recorded.path / name
        whole = file.read_bytes()
        for raw in DAMAGED.values():
            file.write_bytes(whole + raw)
            outcome = project.keval("record", "trim", recorded.id, *wanted, "-o", "small")
            place = f"{name}:{len(whole.splitlines()) + 1}: this line is damaged: "
            assert (2, True) == (outcome.code, place in outcome.stderr), outcome.stderr
            assert outcome.stderr.endswith("; remove it to go on\n")
            assert not (project.root / "small").exists()
            assert whole + raw == file.read_bytes()
        for make in (file.mkdir, partial(os.mkfifo, file)):
            file.unlink()
            make()
            outcome = project.keval("record", "trim", recorded.id, *wanted, "-o", "small")
            assert (2, True) == (outcome.code, f"{name} cannot be read: " in outcome.stderr), outcome.stderr
            assert not (project.root / "small").exists()
            file.rmdir() if file.is_dir() else file.unlink()
            file.write_bytes(whole)


def test_a_torn_last_line_is_left_out(project: Project, recorded: Run) -> None:
    for name in ("trials.jsonl", "scores.jsonl"):
        whole = (recorded.path / name).read_bytes()
        (recorded.path / name).write_bytes(whole + whole.splitlines()[-1][:20])

    outcome = project.keval("record", "trim", recorded.id, "-o", "small")

    assert (0, 12) == (outcome.code, len([*Run(project.root / "small").scores()]) // 2), outcome.stderr


def test_a_trimmed_recording_is_a_run_of_what_was_wanted_and_nothing_else(project: Project, recorded: Run) -> None:
    artifact = keep_artifact(recorded, "two/terse/a/1", b"kept")
    said = [review(recorded, f"{agent}/terse/a/1", note="good") for agent in ("one", "two")]
    recorded.reviews_file.append(said)
    wanted = ["--samples", "b, with a comma", "--samples", "c,a", "--agent", "two", "--condition", "terse"]
    outcome = project.keval("record", "trim", recorded.id, *wanted, "--repetitions", "1", "-o", "small", "--json")

    small = Run(project.root / "small")
    trials = {f"two/terse/{sample}/1" for sample in IDS}
    assert (0, "") == (outcome.code, outcome.stderr)
    assert {"path": "small", "trials": 3, "without_traffic": []} == outcome.data
    assert trials == {trial.id for trial in small.trials()} == {line.trial for line in small.scores()}
    assert said[1:] == small.reviews()
    for trial in small.trials():
        assert recorded.trial(trial.id) == trial
        assert trial.transcript is not None
        assert trial.transcript.request is not None
        assert recorded.blob(trial.transcript.request) == small.blob(trial.transcript.request)
    kept, whole = (Frames(traffic_file(run.path)) for run in (small, recorded))
    assert {FrameKey("endpoint", model="simulated/any"), *(FrameKey("agent", trial=trial) for trial in trials)} == {
        *kept.keys
    }
    assert [whole.raw(key) for key in kept.keys] == [kept.raw(key) for key in kept.keys]
    assert b"kept" == small.blob(artifact)
    assert len([*(small.path / "blobs").iterdir()]) == 4 < len([*(recorded.path / "blobs").iterdir()])


def test_its_manifest_and_summary_are_of_what_is_left(project: Project, recorded: Run) -> None:
    project.keval("record", "trim", recorded.id, "--samples", "a,c", "--condition", "terse", "-o", "small")

    small = Run(project.root / "small")
    manifest, summary = small.manifest, small.written_summary()
    assert summary is not None
    assert (8, 2, "terse", ("a", "c")) == (
        manifest.trials,
        manifest.dataset.samples,
        manifest.baseline,
        manifest.selection.sample_ids,
    )
    assert ({"terse"}, {"one", "two"}) == ({*manifest.config["conditions"]}, {*manifest.config["agents"]})
    assert manifest.recording is not None
    assert recorded.manifest.recording is not None
    assert (recorded.manifest.recording.since, ("a", "c")) == (manifest.recording.since, manifest.recording.samples)
    assert [("held", "one"), ("held", "two")] == [(gate.verdict, gate.agent) for gate in summary.gates]
    assert (8, 4) == (summary.planned, summary.trials[0].trials)


def test_it_names_no_folder_of_the_machine(project: Project, recorded: Run) -> None:
    project.keval("record", "trim", recorded.id, "--samples", "a", "-o", "small")

    files = [path for path in (project.root / "small").rglob("*") if path.is_file()]
    assert [] == [path.name for path in files if str(project.root).encode() in path.read_bytes()]
    assert 0 == project.keval("report", "small").code


def test_it_replays_to_what_it_was_and_a_change_of_ours_is_named(project: Project, recorded: Run) -> None:
    wanted = ["--samples", "a,c", "--agent", "one"]
    project.keval("record", "trim", recorded.id, *wanted, "-o", "small")
    shutil.rmtree(project.root / "results")  # nothing of the whole run is needed
    same = project.keval("run", "--replay", "small", "-o", "same")
    changed = {
        **CONFIG,
        "conditions": {"baseline": {}, "terse": {"system_prompt": "Be blunt."}},
        "metrics": ["basic/tokens"],
    }
    project.write(eval_yaml=yaml.safe_dump(changed))
    missed = project.keval("run", "eval.yaml", "--replay", "small", "-o", "missed")

    live = ["--replay-misses", "live", "--json"]
    renewed = project.keval("run", "eval.yaml", "--replay", "small", *live, "-o", "renewed")

    (first,), (second,), (third,) = (project.root.glob(f"{name}/*/*") for name in ("same", "missed", "renewed"))
    equal = project.keval("compare", "--exact", "small", str(first))
    different = project.keval("compare", "--exact", "small", str(second))
    replay = Run(second).manifest.replay
    assert replay is not None
    assert (0, 0) == (same.code, equal.code), equal.stdout
    assert (1, 1) == (missed.code, different.code)  # by the gate on failures, and as they differ
    assert "trials    4 equal, 4 different" in different.stdout
    assert "failure: none → replay: replay_miss" in different.stdout
    assert ["    -Be terse.", "    +Be blunt."] * 4 == [
        line for line in different.stdout.splitlines() if line.strip().startswith(("-", "+")) and "Be" in line
    ]
    assert (4, 0) == (renewed.data["replay"]["live_trials"], renewed.data["replay"]["live_judgements"])
    assert (0, 0) == (project.keval("run", "--replay", str(third), "-o", "again").code, renewed.code)
    (last,) = (Run(path) for path in project.root.glob("again/*/*"))
    assert last.manifest.replay is not None
    assert (Run(third).id, replay.recorded, 0) == (
        last.manifest.replay.run,
        last.manifest.replay.recorded,
        last.manifest.replay.live_trials,
    )
    assert 0 == project.keval("compare", "--exact", str(third), str(last.path)).code
    assert [
        "conditions.terse.system_prompt: was Be terse., is Be blunt.",
        "metric basic/tokens: it is new",
        "metric basic/turns: it does not score any more",
    ] == list(replay.changes)


def test_a_trial_without_traffic_is_named(project: Project, recorded: Run) -> None:
    path = recorded.path / "trials.jsonl"
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    before = {**line, "id": "one/baseline/a/0", "agent": "one", "condition": "baseline", "sample": "a", "repetition": 0}
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(before) + "\n", encoding="utf-8")

    outcome = project.keval("record", "trim", recorded.id, "--samples", "a", "-o", "small")

    assert "note: one/baseline/a/0 are not in the recording" in outcome.stderr


def test_what_is_not_there_is_refused_and_nothing_is_left(project: Project, recorded: Run) -> None:
    (project.root / "there").mkdir()
    (project.root / "there" / "file").write_text("", encoding="utf-8")
    refusals = {
        ("--samples", "aa"): "has no sample 'aa'; did you mean 'a'?",
        ("--agent", "three"): "has no agent 'three'",
        ("--condition", "ters"): "has no condition 'ters'; did you mean 'terse'?",
        ("-o", "there"): "there is there already; name another directory with -o, or remove it",
    }

    for wanted, told in refusals.items():
        outcome = project.keval("record", "trim", recorded.id, "-o", "small", *wanted)

        assert (2, False) == (outcome.code, (project.root / "small").exists())
        assert told in outcome.stderr


def test_a_run_that_is_not_recorded_and_one_whose_file_is_gone_are_refused(project: Project, recorded: Run) -> None:
    shutil.rmtree(recorded.path / "recording")
    gone = project.keval("record", "trim", recorded.id, "-o", "small")
    path = recorded.path / "manifest.json"
    path.write_text(re.sub(r'"recording": \{[^}]*\}', '"recording": null', path.read_text(encoding="utf-8"), count=1))
    none = project.keval("record", "trim", recorded.id, "-o", "small")

    assert (2, 2) == (gone.code, none.code)
    assert "traffic.jsonl.zst cannot be read" in gone.stderr
    assert "has no recording; `keval run CONFIG --record` makes a run with one" in none.stderr
    assert not (Path(project.root) / "small").exists()
