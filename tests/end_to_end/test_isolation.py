"""No trial sees what another one did with its server: a server that remembers anything serves one trial."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keval.records.formats import time_span
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import Outcome, Project
from tests.end_to_end.servers.model import gateway
from tests.stdio_server import ENVIRONMENT

CONFIG: dict[str, Any] = {
    "dataset": {"path": "questions.jsonl"},
    "agents": {
        "openai": {"model": "openai/gpt-test"},
        "anthropic": {"model": "anthropic/claude-test", "max_tokens": 1000},
    },
    "metrics": ["basic/tool_called"],
    "execution": {"num_repetitions": 3, "max_concurrent": 8},
}


SHARED = {"isolation": "condition"}


def counter(*args: str, **options: Any) -> dict[str, Any]:
    module = ["-m", "tests.end_to_end.servers.counter", *args]
    return {"type": "stdio", "command": sys.executable, "args": module, "env": ENVIRONMENT, **options}


def respond(request: ChatRequest) -> ChatReply:
    """Call the tool that the question names, and answer with its result."""
    last = request.messages[-1]
    return ChatReply(last.text) if last.role == "tool" else ChatReply("", (ChatCall(last.text, {}),))


@pytest.fixture(scope="module")
def environ() -> Iterator[dict[str, str]]:
    with gateway(respond) as environ:
        yield environ


def run(
    root: Path, environ: Mapping[str, str], context: Mapping[str, Any], asked: str, *flags: str, **changes: Any
) -> Project:
    root.mkdir(exist_ok=True)
    project = Project(root)
    arms = {"contexts": {"server": context}, "conditions": {"it": {"contexts": ["server"]}}}
    project.write(
        eval_yaml=json.dumps({**CONFIG, **arms, **changes}),
        questions_jsonl=json.dumps({"id": "one", "question": asked, "tool": asked}),
    )
    outcome = project.run("eval.yaml", *flags, env=environ)
    assert outcome.code == 0, outcome.stderr
    return project


def results(project: Project) -> list[str]:
    return [call["result"] for trial in project.lines("trials.jsonl") for call in trial["transcript"]["tool_calls"]]


def server_entry(project: Project) -> tuple[Any, Any, Any]:
    entry = project.read("manifest.json")["conditions"]["it"]["servers"]["server"]
    return entry["shared"], entry["sharing"], entry["isolation_verified"]


@pytest.mark.slow
def test_every_trial_finds_a_server_that_nobody_has_used(tmp_path: Path, environ: dict[str, str]) -> None:
    first, again = (run(tmp_path / name, environ, counter(), "count") for name in ("first", "again"))

    assert ["1"] * 6 == results(first)
    assert _told(first) == _told(again)
    assert (False, "not read-only: count, begun", True) == server_entry(first)
    shown = first.keval("report", str(first.run_directory()), "--explain").stdout
    assert "server server: one for each trial (not read-only: count, begun)" in " ".join(shown.split())


def test_no_trial_finds_what_another_left_in_a_server_that_only_claims_to_read(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project = run(tmp_path, environ, counter("--read-only"), "count")

    assert ["1"] * 6 == results(project)
    why = "equal calls of count gave different results, despite its readOnlyHint"
    assert (False, why, True) == server_entry(project)
    assert [] == cautions(project)


def test_a_replay_says_of_sharing_what_its_recording_does(tmp_path: Path, environ: dict[str, str]) -> None:
    project = run(tmp_path, environ, counter("--read-only"), "count", "--record")
    recorded = project.run_directory()

    played = project.run("eval.yaml", "--replay", str(recorded))

    (replay,) = [path.parent for path in project.root.glob("results/*/*/manifest.json") if path.parent != recorded]
    again = project.keval("compare", "--exact", str(recorded), str(replay))
    assert (0, 0) == (played.code, again.code), again.stdout


def cautions(project: Project) -> list[str]:
    shown = project.keval("report", str(project.run_directory()), "--markdown").stdout
    return [line for line in shown.splitlines() if "equal calls" in line and "caution" in line]


def _told(project: Project) -> list[tuple[str, str, str]]:
    """What a run says of each trial, but for its times."""
    return sorted(
        (trial["id"], trial["transcript"]["messages"][-1]["text"], trial["transcript"]["tool_calls"][0]["result"])
        for trial in project.lines("trials.jsonl")
    )


@pytest.mark.parametrize(
    ("context", "entry", "told"),
    [
        (
            counter("--read-only", isolation="condition"),
            (True, "isolation: condition", True),
            "shared by trials (isolation: condition); MCP 2025-06-18\n",
        ),
        (
            counter(isolation="condition"),
            (True, "isolation: condition", False),
            "shared by trials (isolation: condition); whether it isolates trials is not verified; MCP 2025-06-18\n",
        ),
    ],
)
def test_trials_share_a_server_that_is_said_to_be_harmless(
    tmp_path: Path, environ: dict[str, str], context: dict[str, Any], entry: tuple[Any, ...], told: str
) -> None:
    project = run(tmp_path, environ, context, "count")

    assert ["1", "2", "3", "4", "5", "6"] == sorted(results(project))
    assert entry == server_entry(project)
    assert f"  server     server: {told}" in project.keval("show", str(project.run_directory())).stdout
    told = "trials share the server server, and equal calls gave other results than in an earlier trial (count 5 of 5)"
    assert [f"- **caution**: {told}: it remembers, or its data changed"] == cautions(project)


@pytest.mark.parametrize(
    ("tap", "told"),
    [
        (True, ([], "each trial has a folder of its own")),
        (False, (["KEVAL_ATTEMPT", "KEVAL_TRIAL"], "agents connect to it themselves (tap: false)")),
    ],
)
def test_each_trial_has_a_folder_of_its_own_with_a_copy_of_what_it_begins_with(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tap: bool, told: tuple[list[str], str]
) -> None:
    for name in ("start", "temporary"):
        (tmp_path / name).mkdir()
    (tmp_path / "start" / "data.txt").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    project = run(tmp_path, environ, counter(cwd={"fresh": True, "copy": "start"}, tap=tap), "begun")

    environment, why = told
    assert [f"True {environment} ['data.txt', 'note']"] * 6 == results(project)
    left = [path.name for name in ("start", "temporary") for path in (tmp_path / name).iterdir()]
    assert ["data.txt"] == left, "nobody works in the folder itself, and the copies are gone"
    assert (False, why, True) == server_entry(project)


@pytest.mark.parametrize(
    ("cwd", "problem"),
    [
        (
            {"fresh": False},
            "eval.yaml:25:11: `fresh: false` creates no folder; remove it, or give a path instead of the mapping",
        ),
        ({"copy": "absent"}, "absent', which is to be copied, is not a folder"),
    ],
)
def test_a_folder_that_cannot_be_made_is_an_error_before_the_run(
    project: Project, cwd: dict[str, Any], problem: str
) -> None:
    server = {"type": "stdio", "command": sys.executable, "cwd": cwd}
    arms = {"contexts": {"server": server}, "conditions": {"it": {"contexts": ["server"]}}}
    project.write(eval_yaml=json.dumps({**CONFIG, **arms}, indent=1), questions_jsonl='{"id": "one", "question": "?"}')

    outcome = project.run("eval.yaml", env={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})

    assert (2, True) == (outcome.code, problem in outcome.stderr), outcome.stderr


def test_a_server_starts_after_the_hook_that_prepares_its_trial(tmp_path: Path, environ: dict[str, str]) -> None:
    stage = {"plugins": [{"double/stagehand": {"path": str(tmp_path)}}]}
    one_by_one = {"execution": {"num_repetitions": 3, "max_concurrent": 1}}

    project = run(
        tmp_path, environ, counter(str(tmp_path / "ready"), cwd={"fresh": True}), "begun", **stage, **one_by_one
    )

    assert ["True [] ['note']"] * 6 == results(project), "the file is there only between the hooks of an attempt"
    told = (tmp_path / "stage.txt").read_text(encoding="utf-8").splitlines()
    trials = [trial["id"] for trial in project.lines("trials.jsonl")]
    assert [line for trial in trials for line in (f"started {trial} 1", f"ended {trial} 1 None")] == told


def test_a_dry_run_says_which_servers_trials_will_share(project: Project) -> None:
    remote = {"type": "http", "url": "http://127.0.0.1:1/mcp"}
    contexts = {
        "hints": counter(),
        "word": counter(isolation="condition"),
        "own": counter(isolation="trial"),
        "folder": counter(cwd={"fresh": True}),
        "direct": counter(tap=False),
        "remote": {**remote, "isolation": "trial"},
        "apart": {"type": "weather"},
    }
    arms = {"contexts": contexts, "conditions": {label: {"contexts": [label]} for label in contexts}}
    project.write(eval_yaml=json.dumps({**CONFIG, **arms}), questions_jsonl='{"id": "one", "question": "count"}')

    outcome = project.run("eval.yaml", "--dry-run", "--json")
    lines = project.run("eval.yaml", "--dry-run").stdout.splitlines()

    assert {
        "hints": (None, None),
        "word": (True, False),
        "own": (False, True),
        "folder": (False, True),
        "direct": (False, True),
        "remote": (False, False),
        "apart": (True, True),
    } == {label: (told["shared"], told["verified"]) for label, told in outcome.data["sharing"].items()}
    told = [line.split(None, 1)[1] for line in lines if line.startswith("  sharing")]
    hints = "hints: shared if every tool is read-only by its hint and gives equal results, which shows when it starts"
    assert f"{hints}; otherwise 6 starts, one for each trial" == told[0]
    assert "word: shared by trials (isolation: condition); whether it isolates trials is not verified" == told[1]
    session = "remote: one for each trial (isolation: trial); whether it isolates trials is not verified"
    assert f"{session}: 6 starts" == told[5]
    assert not any("Trials can share one" in line for line in lines)
    many = project.run("eval.yaml", "--dry-run", "--repetitions", "25").stdout.splitlines()
    (less,) = [line for line in many if "Trials can share one" in line]
    assert less.strip().startswith("Trials can share one if it keeps nothing between calls (isolation: condition, or")


@pytest.mark.parametrize(
    ("options", "told"),
    [({}, ", up to 6 starts of servers"), ({"isolation": "trial"}, ", up to 6 starts of servers"), (SHARED, "")],
)
def test_validate_says_how_many_servers_may_start(project: Project, options: dict[str, Any], told: str) -> None:
    arms = {"contexts": {"server": counter(**options)}, "conditions": {"it": {"contexts": ["server"]}}}
    project.write(eval_yaml=json.dumps({**CONFIG, **arms}), questions_jsonl='{"id": "one", "question": "count"}')

    outcome = project.keval("validate", "eval.yaml")

    assert f"eval.yaml: valid; 6 trials (1 sample){told}\n" == outcome.stdout


def test_a_run_says_what_starting_servers_takes_and_took(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keval_report.totals._NOTABLE_SECONDS", 0.0)
    monkeypatch.setattr("keval_report.totals._NOTABLE_SHARE", 0.0)

    project, outcome = _started(tmp_path, environ, counter())

    (starts,) = project.read("summary.json")["server_starts"]
    assert [starts] == project.read("manifest.json")["server_starts"]
    assert ("it", "server", 6, 6) == tuple(starts[key] for key in ("condition", "server", "planned", "processes"))
    assert 0 < starts["seconds"] < 6 * 10
    begins = "note: 6 server processes are to be started, one for each trial (server), which take about "
    assert begins in outcome.stderr
    assert " each. Trials can share one if" in outcome.stderr
    assert f"6 server starts ({time_span(starts['seconds'])})" in " ".join(outcome.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("options", [SHARED, {}], ids=["shared", "quick"])
def test_a_run_is_silent_of_starts_that_take_little(
    tmp_path: Path, environ: dict[str, str], options: dict[str, Any]
) -> None:
    project, outcome = _started(tmp_path, environ, counter(**options))

    (starts,) = project.read("manifest.json")["server_starts"]
    shared = options == SHARED
    assert (0 if shared else 6, 1 if shared else 6) == (starts["planned"], starts["processes"])
    assert "server processes" not in outcome.stderr
    assert "server start" not in outcome.stdout


def test_a_run_that_goes_on_adds_to_the_starts(tmp_path: Path, environ: dict[str, str]) -> None:
    project, _ = _started(tmp_path, environ, counter())

    again = project.keval("resume", str(project.run_directory()), "--add-repetitions", "1", env=environ)

    (starts,) = project.read("manifest.json")["server_starts"]
    assert (0, 8, 8) == (again.code, starts["planned"], starts["processes"]), again.stderr


def _started(root: Path, environ: dict[str, str], server: dict[str, Any]) -> tuple[Project, Outcome]:
    project = Project(root)
    arms = {"contexts": {"server": server}, "conditions": {"it": {"contexts": ["server"]}}}
    project.write(
        eval_yaml=json.dumps({**CONFIG, **arms}), questions_jsonl='{"id": "one", "question": "count", "tool": "count"}'
    )
    outcome = project.run("eval.yaml", env=environ)
    assert outcome.code == 0, outcome.stderr
    return project, outcome
