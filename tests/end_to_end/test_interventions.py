"""One thing about a context is changed: what the model is sent, and which calls reach the server.

The servers are processes of their own that write down each call with its trial; the gateway keeps the requests that
reach the model. A model searches, opens the page whose id it read, and repeats what it was told.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import Run, ToolCall, open_run
from keval.records.servers import ServerListing
from keval_gateway import ChatCall, ChatReply, ChatRequest
from keval_mcp.changes.changes import FAULT
from tests.conftest import Project, serve_here
from tests.end_to_end.servers.docs import INSTRUCTIONS, PAGES, TOOLS
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT

CHANGES = {
    "docs": "",
    "terse": 'describe: {search: {description: "Finds pages.", parameters: {query: "Words to look for."}}}',
    "renamed": "rename: {search: find_pages}",
    "no_open": "without: [open_page]",
    "scrambled": "results: scrambled",
    "empty": "results: empty",
    "fixed": 'results: {fixed: "Nothing is known of that."}',
    "flaky": "faults: {error: 1.0, delay_seconds: 0.01, seed: 7}",
    "mute": "server_instructions: false",
    "terse_placebo": "results: scrambled",
}
BASES = {"terse_placebo": "terse"}
QUESTIONS = {"restart": "How do I restart the gateway?", "lunch": "When is lunch?"}


@attrs.define
class Ran:
    """A run, and what reached the model in each trial, request by request."""

    project: Project
    record: Path
    requests: dict[str, list[ChatRequest]] = attrs.field(factory=dict)

    @property
    def run(self) -> Run:
        return open_run(self.project.run_directory())

    def calls(self, trial: str) -> list[ToolCall]:
        transcript = self.run.trial(trial).transcript
        assert transcript is not None
        return list(transcript.tool_calls)

    def reached(self, trial: str) -> list[tuple[str, Any]]:
        """The calls of a trial that reached the server."""
        lines = map(json.loads, self.record.read_text(encoding="utf-8").splitlines())
        return [(name, arguments) for of, name, arguments in lines if of == trial]

    def respond(self, request: ChatRequest) -> ChatReply:
        self.requests.setdefault(request.trial, []).append(request)
        results = [message for message in request.messages if message.role == "tool"]
        (question,) = (message.text for message in request.messages if message.role == "user")
        offered = {tool.name.rpartition("__")[2]: tool.name for tool in request.tools}
        search = next((offered[name] for name in ("search", "find_pages") if name in offered), None)
        if search is None:
            return ChatReply("I know nothing of that.")
        if not results:
            return ChatReply("", (ChatCall(search, {"query": question}),))
        found = re.search(r"id\W{1,6}(\d+)", results[0].text)
        if len(results) == 1 and found is not None and "open_page" in offered:
            return ChatReply("", (ChatCall(offered["open_page"], {"id": int(found[1])}),))
        return ChatReply(results[-1].text or "I was told nothing.")


def ran(folder: Path, config: str) -> Ran:
    done = Ran(Project(folder), folder / "calls.jsonl")
    done.record.touch()
    samples = [{"id": name, "question": text} for name, text in QUESTIONS.items()]
    done.project.write(eval_yaml=config, questions_jsonl="\n".join(map(json.dumps, samples)))

    with pytest.MonkeyPatch.context() as patch:
        serve_here(patch, done.respond)
        outcome = done.project.run("eval.yaml", "-j", "8")
    assert outcome.code == 0, outcome.stderr
    return done


def config(agents: str, contexts: dict[str, Any]) -> str:
    given = {"baseline": {}, **{f"with_{label}": {"contexts": [label]} for label in contexts}}
    return json.dumps(
        {
            "agents": {name: {"model": "simulated/m"} for name in agents.split()},
            "contexts": contexts,
            "conditions": given,
            "dataset": {"path": "questions.jsonl"},
            "metrics": ["basic/contains"],
        }
    )


def derived(base: dict[str, Any], name: str = "docs") -> dict[str, Any]:
    """Return every derived context beside its server."""
    from keval.config.source import Source

    changes = {label: Source.parse(f"{{{text}}}", "", Path()).data for label, text in CHANGES.items()}
    return {
        label: base if label == "docs" else {"from": BASES.get(label, name), **change}
        for label, change in changes.items()
    }


def stdio(folder: Path) -> dict[str, Any]:
    args = ["-m", "tests.end_to_end.servers.docs", str(folder / "calls.jsonl")]
    return {"type": "stdio", "command": sys.executable, "args": args, "env": ENVIRONMENT}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Every intervention on a server over stdio, for agents in memory and over the tap."""
    folder = tmp_path_factory.mktemp("interventions")
    return ran(folder, config("openai ms", derived(stdio(folder))))


@pytest.fixture(params=["openai", "ms"])
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def told(request: ChatRequest) -> list[str]:
    """What the model was told by tools."""
    return [message.text for message in request.messages if message.role == "tool"]


def first(done: Ran, trial: str) -> ChatRequest:
    return done.requests[trial][0]


def offered(done: Ran, trial: str) -> dict[str, tuple[str, str]]:
    """The tools of the first request of a trial: the description of each, and that of its first parameter."""
    return {
        tool.name: (tool.description, next(iter(tool.parameters["properties"].values())).get("description", ""))
        for tool in first(done, trial).tools
    }


OWN = {
    tool["name"]: (tool["description"], next(iter(tool["inputSchema"]["properties"].values())).get("description", ""))
    for tool in TOOLS
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("docs", OWN),
        ("terse", {**OWN, "search": ("Finds pages.", "Words to look for.")}),
        ("renamed", {"find_pages": OWN["search"], "open_page": OWN["open_page"]}),
        ("no_open", {"search": OWN["search"]}),
        ("scrambled", OWN),
        ("terse_placebo", {**OWN, "search": ("Finds pages.", "Words to look for.")}),
    ],
)
def test_the_model_is_offered_what_the_change_says(
    everything: Ran, agent: str, condition: str, expected: dict[str, tuple[str, str]]
) -> None:
    assert expected == offered(everything, f"{agent}/with_{condition}/restart/1")


@pytest.mark.parametrize("condition", ["docs", "mute", "terse"])
def test_the_servers_instructions_are_told_under_its_own_name_or_not_at_all(
    everything: Ran, agent: str, condition: str
) -> None:
    prompt = first(everything, f"{agent}/with_{condition}/restart/1").system

    told = f"## docs\n\n{INSTRUCTIONS}"
    assert (condition != "mute", condition != "mute") == (told in prompt, INSTRUCTIONS in prompt)
    assert condition not in prompt.replace("docs", "")


@pytest.mark.parametrize("condition", [condition for condition in CHANGES if condition not in ("flaky", "empty")])
def test_the_server_gets_the_calls_in_its_own_words(everything: Ran, agent: str, condition: str) -> None:
    trial = f"{agent}/with_{condition}/restart/1"

    search = ("search", {"query": QUESTIONS["restart"]})
    opened = [] if condition in ("no_open", "fixed") else [("open_page", {"id": 417})]
    assert [search, *opened] == everything.reached(trial)


def test_a_placebo_says_nothing_at_the_same_length(everything: Ran, agent: str) -> None:
    trial = f"{agent}/with_scrambled/restart/1"
    search, opened = everything.calls(trial)

    assert ["scrambled", "scrambled"] == [search.changed, opened.changed]
    assert [None, None] == [call.changed for call in everything.calls(f"{agent}/with_docs/restart/1")]
    found = {"pages": [{"id": 417, "title": f"About {QUESTIONS['restart']}", "kind": "guide"}]}
    assert len(f"{PAGES[417]} (asked by {trial})") == len(opened.result or "")
    assert len(json.dumps(found)) == len(search.result or "")
    assert "guide" == json.loads(search.result or "")["pages"][0]["kind"]
    assert [] == [said for request in everything.requests[trial] for said in told(request) if "frobnicate" in said]


@pytest.mark.parametrize(
    ("condition", "shown"), [("scrambled", ", scrambled: "), ("flaky", ", never ran, on purpose: ")]
)
def test_show_says_what_was_changed_of_a_call(everything: Ran, condition: str, shown: str) -> None:
    run = str(everything.project.run_directory())

    outcome = everything.project.keval("show", run, "--trial", f"openai/with_{condition}/restart/1")

    assert shown in outcome.stdout


def test_injected_faults_are_errors_of_their_own_kind_that_reach_no_server(everything: Ran, agent: str) -> None:
    trial = f"{agent}/with_flaky/restart/1"
    (call,) = everything.calls(trial)

    assert (FAULT, "injected", 0, []) == (call.error, call.error_kind, call.executions, everything.reached(trial))
    assert 0.01 <= (call.duration or 0)


def test_a_renamed_tool_is_recorded_with_both_names(everything: Ran, agent: str) -> None:
    calls = everything.calls(f"{agent}/with_renamed/restart/1")

    assert [("find_pages", "search"), ("open_page", None)] == [(call.name, call.tool) for call in calls]


def test_the_manifest_has_the_changes_and_the_listings_before_and_after(everything: Ran) -> None:
    conditions = everything.run.manifest.conditions
    docs, terse, mute = (conditions[f"with_{name}"].servers["docs"] for name in ("docs", "terse", "mute"))

    assert ((), None, None) == (docs.interventions, docs.original_sha256, docs.original_listing)
    words = {"description": "Finds pages.", "parameters": {"query": "Words to look for."}}
    assert ({"describe": {"search": words}},) == terse.interventions
    assert (docs.sha256, docs.listing) == (terse.original_sha256, terse.original_listing)
    assert docs.sha256 not in (None, terse.sha256)
    listed = ServerListing.parse(everything.run.blob(docs.listing or ""))
    assert ServerListing(tuple(TOOLS), INSTRUCTIONS) == listed
    told = ServerListing.parse(everything.run.blob(mute.listing or ""))
    assert ServerListing(tuple(TOOLS), None) == told
    assert conditions["with_terse_placebo"].servers["docs"].sha256 == terse.sha256


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """A placebo with renamed tools over HTTP and SSE, and a bundle without two of its tools."""
    folder = tmp_path_factory.mktemp("remote")
    (folder / "calls.jsonl").touch()
    listening = Listening.start("tests.end_to_end.servers.docs", str(folder / "calls.jsonl"))
    change = {"rename": {"search": "find_pages"}, "results": "scrambled"}
    contexts: dict[str, Any] = {"weather_less": {"from": "weather", "without": ["get_*"]}, "weather": {}}
    for transport in ("http", "sse"):
        url = f"http://127.0.0.1:{listening.port}/{'sse' if transport == 'sse' else 'mcp'}"
        contexts[transport] = {"url": url}
        contexts[f"{transport}_placebo"] = {"from": transport, **change}
    data = json.loads(config("openai ms", contexts))
    changed = {label: {"contexts": [label]} for label, context in contexts.items() if "from" in context}
    data["conditions"] = {**changed, "both": {"contexts": ["http", "sse"]}}
    yield ran(folder, json.dumps(data))
    listening.stop()


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_remote_server_is_changed_alike(remote: Ran, agent: str, transport: str) -> None:
    trial = f"{agent}/{transport}_placebo/restart/1"

    assert {"find_pages", "open_page"} == {tool.name for tool in first(remote, trial).tools}
    assert [("search", {"query": QUESTIONS["restart"]}), ("open_page", {"id": 417})] == remote.reached(trial)
    assert ["scrambled", "scrambled"] == [call.changed for call in remote.calls(trial)]
    assert [] == [said for request in remote.requests[trial] for said in told(request) if PAGES[417] in said]


def test_a_bundle_is_changed_alike(remote: Ran, agent: str) -> None:
    tools = {tool.name for tool in first(remote, f"{agent}/weather_less/restart/1").tools}

    server = remote.run.manifest.conditions["weather_less"].servers["weather"]
    assert tools == {*server.tools}
    original = ServerListing.parse(remote.run.blob(server.original_listing or ""))
    left_out = {tool["name"] for tool in original.tools} - tools
    assert left_out
    assert left_out == {name for name in (tool["name"] for tool in original.tools) if name.startswith("get_")}


def test_tools_of_one_name_are_prefixed_by_their_servers(remote: Ran, agent: str) -> None:
    trial = f"{agent}/both/restart/1"

    names = {"search", "open_page"}
    prefixed = {f"{server}__{name}" for server in ("http", "sse") for name in names}
    assert prefixed == {tool.name for tool in first(remote, trial).tools}
    assert [("search", {"query": QUESTIONS["restart"]}), ("open_page", {"id": 417})] == remote.reached(trial)
    assert [("sse", "sse__search", "search"), ("sse", "sse__open_page", "open_page")] == [
        (call.server, call.name, call.tool) for call in remote.calls(trial)
    ]
    servers = remote.run.manifest.conditions["both"].servers
    assert {name: f"sse__{name}" for name in names} == servers["sse"].aliases
    assert prefixed == {*servers["sse"].tools, *servers["http"].tools}
    listed = ServerListing.parse(remote.run.blob(servers["sse"].listing or ""))
    assert {*servers["sse"].tools} == {tool["name"] for tool in listed.tools}
    assert servers["http"].sha256 == servers["sse"].sha256
