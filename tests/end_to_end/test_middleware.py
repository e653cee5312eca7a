"""Middleware in whole runs: it stands between every agent or judge and its model, whatever the framework."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pytest
import yaml

from tests.conftest import ON_PATH, Outcome, Project

pytestmark = pytest.mark.usefixtures("simulated_here")

AGENTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "gadk-gemini": ("gemini", {"type": "gadk", "api": "gemini"}),
    "gadk-chat": ("openai-chat", {"type": "gadk", "api": "chat"}),
    "gadk-responses": ("openai-responses", {"type": "gadk", "api": "responses"}),
    "gadk-anthropic": ("anthropic", {"type": "gadk", "api": "anthropic"}),
    "ms-chat": ("openai-chat", {"type": "ms"}),
    "ms-responses": ("openai-responses", {"type": "ms", "api": "responses"}),
    "openai-chat": ("openai-chat", {"type": "openai"}),
    "openai-responses": ("openai-responses", {"type": "openai", "api": "responses"}),
    "anthropic": ("anthropic", {"type": "anthropic"}),
}
"""Agents by label, each with the wire that it speaks."""
PROXIED, IN_PROCESS = "gadk-chat", "openai-chat"
JUDGES = {"openai": "openai-chat", "anthropic": "anthropic"}
"""Judges by label, each with the wire that it speaks."""
VERDICT = {"double_brevity": {"reasoning": "It is short.", "score": 3}, "unverified_claims": []}

NAMED, AGAIN = "{script: [{text: 'I am {model}.'}]}", "{script: [{text: 'I am still {model}.'}]}"
BUSY = "{script: [{fault: {status: 429, retry_after: 0}}, {text: Now.}]}"
BROKEN = "{script: [{fault: {status: 500}}, {text: Now.}]}"


def evaluate(
    project: Project, middleware: Sequence[Any] | None, *questions: Mapping[str, Any], **sections: Any
) -> tuple[Outcome, dict[str, dict[str, Any]]]:
    """Run an evaluation of scripted models, by default of one proxied agent and one that is not; trials are by id.

    What gets past `middleware` is counted; with `None` there is no middleware at all.
    """
    listed = [] if middleware is None else [*middleware, {"double/counting": {"journal": "counted.jsonl"}}]
    config = {
        "dataset": {"path": "questions.yaml"},
        "agents": agents(PROXIED, IN_PROCESS),
        "conditions": {"baseline": {}},
        "metrics": ["basic/turns"],
        "middleware": listed,
        "execution": {"retry": {"initial_backoff_seconds": 0, "max_attempts": 2}},
        **sections,
    }
    project.write(
        eval_yaml=yaml.safe_dump(config),
        questions_yaml=yaml.safe_dump([{"id": f"q{number}", **each} for number, each in enumerate(questions, start=1)]),
        verdict_yaml=yaml.safe_dump([{"text": json.dumps(VERDICT)}]),
    )
    outcome = keval(project, "run", "eval.yaml", "--json")
    return outcome, {line["id"]: line for line in project.lines("trials.jsonl")}


def agents(*labels: str) -> dict[str, Any]:
    return {label: {"model": "simulated/double/scripted", **AGENTS[label][1]} for label in labels}


def keval(project: Project, *args: str) -> Outcome:
    path = os.pathsep.join([*ON_PATH, os.environ.get("PYTHONPATH", "")])
    env = {"PYTHONPATH": path, "KEVAL_DOUBLES_SCRIPT": "verdict.yaml", "KEVAL_DOUBLES_JOURNAL": "answered.jsonl"}
    return project.keval(*args, env=env)


def counted(project: Project) -> list[dict[str, Any]]:
    """The requests as the middleware saw them."""
    return [entry for entry in read(project, "counted.jsonl") if entry["event"] == "request"]


def read(project: Project, name: str) -> list[dict[str, Any]]:
    """The requests as the model saw them are in `answered.jsonl`."""
    path = project.root / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def test_every_request_of_every_agent_and_judge_is_seen_and_known(project: Project) -> None:
    outcome, trials = evaluate(
        project,
        [],
        {"question": NAMED, "turns": [AGAIN]},
        {"question": BUSY},
        agents=agents(*AGENTS),
        judges={label: {"model": "simulated/double/scripted"} for label in JUDGES},
        rubrics=["double/brevity"],
        metrics=[],
    )

    assert 0 == outcome.code, outcome.stderr
    seen, answered = counted(project), read(project, "answered.jsonl")
    assert Counter(entry["wire"] for entry in seen) == Counter(entry["wire"] for entry in answered)
    of_agents = Counter(
        (each["label"], each["trial"], each["repetition"], each["attempt"], entry["wire"], entry["status"])
        for entry in seen
        if (each := entry["asker"])["role"] == "agent"
    )
    wanted = Counter[Any]()
    for label, (wire, _) in AGENTS.items():
        wanted[label, f"{label}/baseline/q1/1", 1, 1, wire, 200] += 2
        wanted[label, f"{label}/baseline/q2/1", 1, 1, wire, 429] += 1
        wanted[label, f"{label}/baseline/q2/1", 1, 1, wire, 200] += 1
    assert wanted == of_agents
    of_judges = Counter(
        (each["label"], each["trial"], each["repetition"], each["attempt"], entry["wire"])
        for entry in seen
        if (each := entry["asker"])["role"] == "judge"
    )
    assert Counter((label, trial, 1, 1, wire) for label, wire in JUDGES.items() for trial in trials) == of_judges
    assert {"double/scripted"} == {entry["model"] for entry in seen}
    assert [[], []] == leaked(seen, answered)


def leaked(seen: Sequence[Mapping[str, Any]], answered: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The headers that neither a middleware nor a model may see."""
    keys = {"authorization", "x-api-key", "x-goog-api-key"}
    return [
        sorted({name for entry in seen for name in entry["headers"]} & {*keys, "x-keval-asker"}),
        sorted({name for entry in answered for name in entry["headers"]} & {"x-keval-asker"}),
    ]


@pytest.mark.skipif(not find_spec("claude_agent_sdk"), reason="keval-claude-code is installed apart")
def test_claude_code_streams_through_the_middleware(project: Project) -> None:
    section = {"claude-code": {"model": "simulated/double/scripted"}}

    outcome, trials = evaluate(project, [], {"question": NAMED, "turns": [AGAIN]}, agents=section)

    seen, answered = counted(project), read(project, "answered.jsonl")
    assert (0, ["I am still double/scripted."]) == (outcome.code, [trial["output"] for trial in trials.values()])
    asked = [entry for entry in seen if entry["path"].partition("?")[0] == "/v1/messages"]
    assert [("claude-code", "claude-code/baseline/q1/1", 200)] * 2 == [
        (entry["asker"]["label"], entry["asker"]["trial"], entry["status"]) for entry in asked
    ]
    assert [True, True] == [entry["stream"] for entry in answered]
    assert [[], []] == leaked(seen, answered)


def test_a_middleware_may_ask_again_of_which_the_agent_knows_nothing(project: Project) -> None:
    outcome, trials = evaluate(project, ["double/retrying"], {"question": BUSY}, {"question": BROKEN})

    assert 0 == outcome.code, outcome.stderr
    assert [("Now.", [])] * 4 == [(trial["output"], trial["attempts"]) for trial in trials.values()]
    statuses = Counter(
        (entry["asker"]["trial"], entry["asker"]["attempt"], entry["status"]) for entry in counted(project)
    )
    wanted = [(trial, 1, status) for trial in trials for status in (429 if "q1" in trial else 500, 200)]
    assert Counter(wanted) == statuses
    assert 8 == len(read(project, "answered.jsonl"))


def test_a_middleware_may_change_the_request(project: Project) -> None:
    change = {"double/rewriting": {"old": "Before", "new": "After all"}}

    outcome, trials = evaluate(project, [change], {"question": "{script: [{text: Before.}]}"})

    assert (0, {"After all."}) == (outcome.code, {trial["output"] for trial in trials.values()})
    # What the model saw is kept, and not what the agent sent.
    blobs = project.run_directory() / "blobs"
    kept = [(blobs / trial["transcript"]["request"]).read_text(encoding="utf-8") for trial in trials.values()]
    assert [(False, True)] * 2 == [("Before" in request, "After all" in request) for request in kept]


def test_a_middleware_that_raises_fails_the_request_and_is_named(project: Project) -> None:
    judges = {"openai": {"model": "simulated/double/scripted"}}

    outcome, trials = evaluate(
        project, ["double/failing"], {"question": NAMED}, judges=judges, rubrics=["double/brevity"]
    )

    assert (3, 2) == (outcome.code, len(trials))
    for trial in trials.values():
        assert "http_502" == trial["failure"]["kind"]
        assert "the middleware 'double/failing' failed: ValueError: out of order" in trial["failure"]["message"]
        assert ["http_502"] == [attempt["failure"]["kind"] for attempt in trial["attempts"]]
    assert [] == read(project, "answered.jsonl")


def test_scoring_again_uses_the_middleware(project: Project) -> None:
    judges = {label: {"model": "simulated/double/scripted"} for label in JUDGES}
    evaluate(project, [], {"question": NAMED}, agents=agents(IN_PROCESS), judges=judges, rubrics=["double/brevity"])
    before = len(counted(project))

    outcome = keval(project, "score", "latest", "--judge", "anthropic")

    assert 0 == outcome.code, outcome.stderr
    assert ["anthropic"] == [entry["asker"]["label"] for entry in counted(project)[before:]]
    events = [entry["event"] for entry in read(project, "counted.jsonl")]
    assert ["prepared", *["request"] * 3, "closed", "prepared", "request", "closed"] == events


def test_a_judge_with_an_address_of_its_own_is_asked_through_the_middleware_and_stays_the_same_scorer(
    project: Project,
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        sections = {
            "agents": agents(IN_PROCESS),
            "judges": {"openai": {"model": "m", "base_url": url}},
            "rubrics": ["double/brevity"],
            "execution": {"retry": {"max_attempts": 1, "max_request_attempts": 1}},
        }
        digests = []
        for counting in (True, False):
            evaluate(project, [] if counting else None, {"question": NAMED}, **sections)
            digests.append([scorer["digest"] for scorer in project.read("manifest.json")["scorers"]])
            (score,) = (line for line in project.lines("scores.jsonl") if line["judge"])
            assert "connection" in json.dumps(score)
            shutil.rmtree(project.root / "results")

    assert [None] == [entry["status"] for entry in counted(project) if entry["asker"]["role"] == "judge"]
    assert digests[0] == digests[1]
