"""Tool calls are counted as the MCP server saw them: by both frameworks, over stdio and HTTP, tapped and direct."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT

LOOK = ChatCall("look", {"where": "north"})
AIMLESS = ChatCall("look")
FAIL, RECOVER = ChatCall("fail"), ChatCall("recover", {"where": "north"})
UNKNOWN, REFUSED = ChatCall("fly", {"where": "north"}), ChatCall("pick", {"number": 13})
MEET, VANISH = ChatCall("meet", {"key": "k"}), ChatCall("vanish", {"key": "k"})

ASKED: dict[str, Sequence[Sequence[ChatCall]]] = {
    "all kinds": [[LOOK, LOOK, MEET, MEET], [LOOK, FAIL, UNKNOWN, REFUSED, AIMLESS], [RECOVER], [RECOVER], []],
    "two turns": [[LOOK], [], [LOOK, LOOK], []],
    "a lost session": [[LOOK], [VANISH, MEET], []],
}
"""What the model asks for, reply by reply, whatever comes of it; without calls it answers."""

CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {agents}
contexts:
  stdio: &server
    {{type: stdio, command: python, args: [-m, {server}, {journal}], env: {env}, isolation: {isolation}}}
  stdio-direct: {{<<: *server, isolation: condition, tap: false}}
  http: {{type: http, url: "{url}"}}
  http-direct: {{type: http, url: "{url}", tap: false}}
conditions:
  stdio: {{contexts: [stdio]}}
  stdio-direct: {{contexts: [stdio-direct]}}
  http: {{contexts: [http]}}
  http-direct: {{contexts: [http-direct]}}
metrics: [weather/tool_call_count]
execution: {{max_concurrent: 4, num_repetitions: {repetitions}, retry: {{initial_backoff_seconds: 0}}}}
"""

FRAMEWORKS = {"gadk": {"model": "google/gemini-test"}, "ms": {"model": "openai/gpt-test"}}
PLAIN = {"openai": {"model": "openai/gpt-test"}, "anthropic": {"model": "anthropic/claude-test", "max_tokens": 1000}}
TAPPED = ["gadk/stdio", "gadk/http", "ms/stdio", "ms/http"]
DIRECT = [f"{arm}-direct" for arm in TAPPED]
tapped, direct = pytest.mark.parametrize("arm", TAPPED), pytest.mark.parametrize("arm", DIRECT)


@attrs.frozen
class Run:
    """What a run left: its trials, the tool calls that the metric counted, and what the servers wrote down."""

    trials: Sequence[Mapping[str, Any]]
    counted: Mapping[str, int]
    journal: Sequence[Mapping[str, Any]]

    def of(self, arm: str, sample: str) -> list[Mapping[str, Any]]:
        """Return the repetitions of a sample in an arm."""
        return [trial for trial in self.trials if trial["id"].startswith(f"{arm}/{sample}/")]

    def seen(self, trial: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return what the servers saw of a trial, in order."""
        return [entry for entry in self.journal if entry["trial"] == trial["id"]]


def scripted(request: ChatRequest) -> ChatReply:
    replies = sum(message.role == "assistant" for message in request.messages)
    calls = ASKED[request.messages[0].text][replies]
    return ChatReply("" if calls else "Done.", tuple(calls))


@contextmanager
def listening(journal: Path, protocol: str) -> Iterator[str]:
    """Serve over streamable HTTP, and yield the URL."""
    process = Listening.start("tests.end_to_end.servers.tally_http", journal, protocol)
    try:
        yield f"http://127.0.0.1:{process.port}/mcp"
    finally:
        process.stop()


def run(
    root: Path, agents: Mapping[str, Any], samples: Iterable[Mapping[str, Any]], protocol: str = "http", **options: Any
) -> Run:
    project, journal = Project(root), root / "journal.jsonl"
    journal.touch()
    project.write(questions_jsonl="\n".join(json.dumps(sample) for sample in samples))
    server = {"server": "tests.end_to_end.servers.tally", "env": json.dumps(ENVIRONMENT), "journal": journal}
    with listening(journal, protocol) as url, gateway(scripted) as environ:
        project.write(eval_yaml=CONFIG.format(agents=json.dumps(agents), url=url, **server, **options))
        outcome = project.run("eval.yaml", env=environ)
    assert outcome.code == 0, outcome.stderr
    return Run(
        trials=project.lines("trials.jsonl"),
        counted={line["trial"]: line["details"]["count"] for line in project.lines("scores.jsonl")},
        journal=[json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()],
    )


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Every kind of call and a conversation, twice in each arm, four trials at a time."""
    samples: list[dict[str, Any]] = [
        {"id": "kinds", "question": "all kinds"},
        {"id": "turns", "question": "two turns", "turns": ["And now?"]},
    ]
    found = run(tmp_path_factory.mktemp("well"), FRAMEWORKS, samples, isolation="condition", repetitions=2)
    assert 2 * 2 * 4 * 2 == len(found.trials)
    return found


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A session that is lost in the middle of two calls, once in each trial."""
    samples = [{"id": "lost", "question": "a lost session"}]
    agents = {**FRAMEWORKS, **PLAIN}
    return run(tmp_path_factory.mktemp("broken"), agents, samples, "sessions", isolation="trial", repetitions=1)


def key(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def executed(entries: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count what the servers saw, by tool and arguments."""
    return Counter(key(entry["tool"], entry["arguments"]) for entry in entries)


def ran(calls: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count the runs that a transcript tells of, by tool and arguments."""
    counted = Counter[str]()
    for call in calls:
        counted[key(call["name"], call["arguments"])] += call["executions"]
    return +counted


def kept_back(arm: str) -> list[ChatCall]:
    """Return the calls that reach no server: Agent Framework checks arguments against the tool's schema itself."""
    return [UNKNOWN, AIMLESS] if arm.startswith("ms/") else [UNKNOWN]


def sent(arm: str, calls: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    kept = {key(call.name, call.arguments) for call in kept_back(arm)}
    return [call for call in calls if key(call["name"], call["arguments"]) not in kept]


@pytest.mark.slow
@tapped
@pytest.mark.parametrize("sample", ["kinds", "turns"])
def test_behind_the_tap_the_runs_of_a_trial_are_what_the_server_saw(well: Run, arm: str, sample: str) -> None:
    for trial in well.of(arm, sample):
        calls, seen = trial["transcript"]["tool_calls"], well.seen(trial)

        assert executed(seen) == ran(calls)
        assert len(seen) == sum(call["executions"] for call in calls) == len(sent(arm, calls))


@direct
@pytest.mark.parametrize("sample", ["kinds", "turns"])
def test_without_the_tap_the_calls_listed_are_what_the_server_saw(well: Run, arm: str, sample: str) -> None:
    for trial in well.of(arm, sample):
        calls, seen = trial["transcript"]["tool_calls"], well.seen(trial)

        assert executed(seen) == Counter(key(call["name"], call["arguments"]) for call in sent(arm, calls))
        assert {None} == {call["executions"] for call in sent(arm, calls)}
        assert {0} >= {call["executions"] for call in calls} - {None}


@pytest.mark.parametrize("arm", ["gadk/stdio", "gadk/http-direct", "ms/http", "ms/stdio-direct"])
def test_a_call_of_a_tool_that_does_not_exist_never_ran(well: Run, arm: str) -> None:
    for trial in well.of(arm, "kinds"):
        (unknown,) = [call for call in trial["transcript"]["tool_calls"] if call["name"] == UNKNOWN.name]

        assert (0, None) == (unknown["executions"], unknown["result"])
        assert UNKNOWN.name in unknown["error"]


@pytest.mark.parametrize("sample", ["kinds", "turns"])
def test_calls_are_parallel_when_one_model_call_asked_for_them(well: Run, sample: str) -> None:
    question = {"kinds": "all kinds", "turns": "two turns"}[sample]
    expected = [
        (number, key(call.name, call.arguments))
        for number, calls in enumerate(ASKED[question], start=1)
        for call in calls
    ]

    for trial in well.trials:
        if trial["sample"] == sample:
            calls = trial["transcript"]["tool_calls"]

            assert expected == [(call["model_call"], key(call["name"], call["arguments"])) for call in calls]
            assert len(ASKED[question]) == trial["transcript"]["model_calls"]


def test_the_calls_of_a_conversation_keep_their_turns(well: Run) -> None:
    for trial in well.trials:
        if trial["sample"] == "turns":
            assert [0, 1, 1] == [call["turn"] for call in trial["transcript"]["tool_calls"]]


def test_failed_calls_are_told_apart(well: Run) -> None:
    fails = {key(call.name, call.arguments) for call in (FAIL, UNKNOWN, REFUSED, AIMLESS)}

    for trial in well.trials:
        for call in trial["transcript"]["tool_calls"]:
            if call["name"] != RECOVER.name:
                assert (call["error"] is not None) == (key(call["name"], call["arguments"]) in fails)
                assert (call["error"] is None) == (call["result"] is not None)


@pytest.mark.parametrize("kind", ["tapped", "direct"])
def test_a_call_that_failed_is_not_mixed_up_with_its_repetition_that_did_not(well: Run, kind: str) -> None:
    for trial in well.trials:
        if trial["sample"] == "kinds" and ("direct" in trial["condition"]) == (kind == "direct"):
            failed, repeated = [call for call in trial["transcript"]["tool_calls"] if call["name"] == RECOVER.name]
            first, second = [entry["serial"] for entry in well.seen(trial) if entry["tool"] == RECOVER.name]

            assert (None, first) == (failed["result"], failed["error"])
            assert (second, None) == (repeated["result"], repeated["error"])


def test_every_result_is_that_of_a_run_of_its_own(well: Run) -> None:
    for trial in well.trials:
        results = Counter(call["result"] for call in trial["transcript"]["tool_calls"] if call["error"] is None)
        serials = {entry["serial"]: entry for entry in well.seen(trial)}

        assert {1} == set(results.values())
        assert results.keys() <= serials.keys()


@pytest.mark.parametrize("arm", [*TAPPED, *DIRECT])
def test_the_metric_counts_the_runs_of_the_last_turn(well: Run, arm: str) -> None:
    for trial in well.of(arm, "kinds"):
        assert len(well.seen(trial)) == well.counted[trial["id"]]
    for trial in well.of(arm, "turns"):
        assert len(well.seen(trial)) - 1 == well.counted[trial["id"]] == 2


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["stdio", "stdio-direct", "http", "http-direct"])
@pytest.mark.parametrize("agent", [*FRAMEWORKS, *PLAIN])
def test_the_attempt_that_lost_its_session_tells_what_ran_before_it_was_made_anew(
    broken: Run, agent: str, condition: str
) -> None:
    (trial,) = broken.of(f"{agent}/{condition}", "lost")
    seen = broken.seen(trial)

    told = [attempt["transcript"]["tool_calls"] for attempt in (*trial["attempts"], trial)]

    # No agent sent a call again in the same attempt: the next attempt is a trial from its start.
    by_attempt = [
        [entry for entry in seen if entry["attempt"] == attempt]
        for attempt in dict.fromkeys(entry["attempt"] for entry in seen)
    ]
    assert [("mcp", "server_lost")] == [(a["failure"]["stage"], a["failure"]["kind"]) for a in trial["attempts"]]
    assert [Counter(look=1, vanish=1, meet=1)] * 2 == [Counter(e["tool"] for e in entries) for entries in by_attempt]
    watched = None if condition.endswith("direct") else 1
    for calls, entries in zip(told, by_attempt, strict=True):
        assert executed(entries) == Counter(key(call["name"], call["arguments"]) for call in calls)
        assert [watched] * 3 == [call["executions"] for call in calls]
    (vanished,) = [call for call in told[0] if call["name"] == VANISH.name]
    assert vanished["result"] is None
    assert [None] * 3 == [call["error"] for call in told[1]]
