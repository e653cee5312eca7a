"""`keval compare --exact`: whether two runs are the same in canonical form, and what differs."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval.store.run import Run
from tests.conftest import Project
from tests.ratings import run_of

ANSWERS = {"a": 0.25, "b": 0.5, "c": 0.5}
DIFFERENT = """\
BEFORE → NOW
these runs are different
manifest  2 differences
samples   2 equal, 1 different
trials    3 equal, 2 different, 1 only in BEFORE
scores    9 equal, 1 different, 2 only in BEFORE

the runs' manifests
  conditions.with_docs.require_mcp_tool_use: false → true
  seed: 0 → 7
versions that differ, which is not counted: keval VERSION → 99

sample c
  answer: none → forty two

trial one/baseline/a/1
  failure: none → replay: replay_miss
    the first request differs from the recorded one, in the system prompt:
      --- recorded
      +++ now
      -Be brief.
      +Be terse.
  and 1 other difference; --json lists all

trial one/baseline/b/1
  scores.number/rating: 0.5 → absent

trial one/with_docs/a/1
  output: 0.25 → 0.75

trial one/with_docs/c/1
  only in BEFORE
"""
MISS = "the first request differs from the recorded one, in the system prompt:\n  --- recorded\n  +++ now\n"


def edit(run: Run, name: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the lines of a run's file as if another run had written them."""
    path = run.path / name
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def edit_manifest(of: Run, **values: Any) -> None:
    path = of.path / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


def named(lines: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(line for line in lines if line["id"] == name)


@pytest.fixture
def before(project: Project) -> Run:
    return run_of(project, "ratings", ANSWERS)


@pytest.fixture
def now(before: Run) -> Run:
    """The same run again, elsewhere, at another time and in another order: by itself, only what is edited differs."""
    path = before.path.with_name("20990101-000000-abcd")
    shutil.copytree(before.path, path)
    run = Run(path)
    told = {"started": "2099-01-01T00:00:00+00:00", "elapsed": 99.0, "config_folder": "/elsewhere"}
    edit_manifest(run, sealed={}, run=path.name, **told)
    edit(run, "trials.jsonl", lambda lines: lines.reverse())
    edit(run, "scores.jsonl", lambda lines: lines.reverse())
    return Run(path)


def test_runs_of_the_same_are_equal_whenever_they_were_made(project: Project, before: Run, now: Run) -> None:
    def later(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            line["transcript"] |= {"started": 4e9, "duration": 5.0, "turn_durations": [5.0], "replies": [1.0]}

    def keep_texts(run: Run, **kept: Any) -> None:
        manifest = json.loads((run.path / "manifest.json").read_text(encoding="utf-8"))
        manifest["conditions"]["with_docs"]["texts"] = {"pages": {"sha256": "0" * 64, **kept}}
        edit_manifest(run, conditions=manifest["conditions"])

    edit(now, "trials.jsonl", later)
    keep_texts(before)  # as earlier versions did
    keep_texts(now, texts={"instructions": "0" * 64})
    outcome = project.keval("compare", "--exact", before.id, now.id)
    timed = project.keval("compare", "--exact", before.id, now.id, "--times", "--json")

    assert (0, "") == (outcome.code, outcome.stderr)
    assert f"{before.id} → {now.id}\nthese runs are equal\nmanifest  the same\n" in outcome.stdout
    assert (1, False, 6, 12) == (
        timed.code,
        timed.data["equal"],
        timed.data["trials"]["different"],
        timed.data["scores"]["equal"],
    )


def test_what_differs_is_told_trial_by_trial(project: Project, before: Run, now: Run) -> None:
    manifest = json.loads((now.path / "manifest.json").read_text(encoding="utf-8"))
    version, manifest["versions"]["keval"] = manifest["versions"]["keval"], "99"
    manifest["conditions"]["with_docs"]["require_mcp_tool_use"] = True
    edit_manifest(now, **manifest | {"seed": 7})

    def samples(lines: list[dict[str, Any]]) -> None:
        named(lines, "c")["answer"] = "forty two"

    def trials(lines: list[dict[str, Any]]) -> None:
        lines.remove(named(lines, "one/with_docs/c/1"))
        first = named(lines, "one/baseline/a/1")
        named(lines, "one/with_docs/a/1")["transcript"]["messages"][-1]["text"] = "0.75"
        first["failure"] = {"stage": "replay", "kind": "replay_miss", "message": f"{MISS}  -Be brief.\n  +Be terse."}

    def scores(lines: list[dict[str, Any]]) -> None:
        lines[:] = [line for line in lines if line["trial"] != "one/with_docs/c/1" or line["metric"] != "number/rating"]
        of_b = [line for line in lines if line["trial"] == "one/baseline/b/1"]
        lines.remove(next(line for line in of_b if line["metric"] == "number/rating"))
        of_a = [line for line in lines if line["trial"] == "one/baseline/a/1"]
        next(line for line in of_a if line["metric"] == "double/characters")["value"] = 9.0

    edit(now, "samples.jsonl", samples)
    edit(now, "trials.jsonl", trials)
    edit(now, "scores.jsonl", scores)
    outcome = project.keval("compare", "--exact", before.id, now.id)

    said = outcome.stdout.replace(before.id, "BEFORE").replace(now.id, "NOW").replace(version, "VERSION")
    assert (1, "") == (outcome.code, outcome.stderr)
    assert DIFFERENT == said


def test_the_same_bytes_are_equal_and_a_null_argument_is_not_a_missing_one(
    project: Project, before: Run, now: Run
) -> None:
    def called(arguments: dict[str, Any], port: str) -> Callable[[list[dict[str, Any]]], None]:
        def change(lines: list[dict[str, Any]]) -> None:
            call = {"name": "find", "arguments": arguments, "error": f"nothing at http://127.0.0.1:{port}/mcp"}
            named(lines, "one/baseline/a/1")["transcript"]["tool_calls"] = [call]

        return change

    edit(before, "trials.jsonl", called({"unit": None}, "4711"))
    edit(now, "trials.jsonl", called({"unit": None}, "52001"))
    same = project.keval("compare", "--exact", before.id, now.id, "--json")
    edit(now, "trials.jsonl", called({}, "52001"))
    other = project.keval("compare", "--exact", before.id, now.id, "--json")

    assert (0, True) == (same.code, same.data["equal"])
    assert [
        {
            "path": "transcript.tool_calls[0].arguments.unit",
            "before": None,
            "now": None,
            "only_in": "before",
        }
    ] == other.data["items"][0]["changes"]


def test_what_an_agent_declares_to_vary_makes_no_difference(project: Project, before: Run, now: Run) -> None:
    def asked(run: Run, number: int, tool: str) -> Callable[[list[dict[str, Any]]], None]:
        name = f"adk-0000000{number}-1111-2222-3333-444444444444"
        body = json.dumps({"tools": [{"name": "find", "description": tool}], "call_id": name}).encode()
        sha256 = hashlib.sha256(body).hexdigest()
        (run.path / "blobs").mkdir(exist_ok=True)
        (run.path / "blobs" / sha256).write_bytes(body)

        def change(lines: list[dict[str, Any]]) -> None:
            transcript = named(lines, "one/baseline/a/1")["transcript"]
            transcript |= {"request": sha256, "tool_calls": [{"name": "find", "id": name}]}

        return change

    for run in (before, now):
        manifest = json.loads((run.path / "manifest.json").read_text(encoding="utf-8"))
        manifest["agents"]["one"]["type"] = "gadk"
        edit_manifest(run, **manifest)
    edit(before, "trials.jsonl", asked(before, 1, "Finds things."))
    edit(now, "trials.jsonl", asked(now, 2, "Finds things."))
    same = project.keval("compare", "--exact", before.id, now.id)
    edit(now, "trials.jsonl", asked(now, 3, "Finds everything."))
    other = project.keval("compare", "--exact", before.id, now.id)

    assert (0, 1) == (same.code, other.code)
    assert "\n  request.tools[0].description: Finds things. → Finds everything.\n" in other.stdout


def test_only_as_many_items_as_wanted_are_listed(project: Project, before: Run, now: Run) -> None:
    edit(now, "trials.jsonl", lambda lines: [line.update(model="other/model") for line in lines])
    outcome = project.keval("compare", "--exact", before.id, now.id, "--limit", "2")

    assert (1, 2) == (outcome.code, outcome.stdout.count("\n  model: "))
    assert "4 more samples and trials differ" in outcome.stdout


def test_runs_that_say_nothing_of_each_other_are_refused(project: Project, before: Run, now: Run) -> None:
    itself = project.keval("compare", "--exact", before.id, str(before.path))
    Path(now.trials_file).write_text("", encoding="utf-8")
    empty = project.keval("compare", "--exact", before.id, now.id)

    assert (2, 2) == (itself.code, empty.code)
    assert "a run is compared with itself" in itself.stderr
    assert f"{now.path.name} has no trials" in empty.stderr
