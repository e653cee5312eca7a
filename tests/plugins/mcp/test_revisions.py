"""Servers are spoken to in the revision of MCP that their context asks for, by whatever their agents speak."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import Sample
from keval.plugin import PreflightError, ServerLostError
from keval_mcp import Http, Stdio
from tests.conftest import Project
from tests.contexts import started
from tests.plugins.mcp.agent_clients import connected, ordering, said
from tests.plugins.mcp.test_refusing import MODERN, STDIO, UNKNOWN, error, listed
from tests.processes import Listening

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

OLD, NEW = "2025-11-25", "2026-07-28"


@pytest.fixture(scope="module")
def dual() -> Iterator[str]:
    """The URL of a server that speaks both revisions."""
    one = Listening.start("tests.plugins.mcp.servers.dual")
    yield f"http://127.0.0.1:{one.port}/mcp"
    one.stop()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(("protocol", "spoken"), [(None, OLD), (OLD, OLD), (NEW, NEW), ("newest", NEW)])
def test_server_is_spoken_to_in_the_revision_that_is_asked_for(
    dual: str, sample: Sample, protocol: Any, spoken: str, mode: str
) -> None:
    by_agent = NEW if (spoken, mode) == (NEW, "auto") else OLD
    told = ["notifications/message", "notifications/resources/updated"]
    told = told[: 1 if spoken == OLD else 2 if by_agent == OLD else 0]

    async def run() -> list[Any]:
        heard: asyncio.Queue[str] = asyncio.Queue()

        async def hear(message: Any) -> None:
            heard.put_nowait(message.method)

        options = {**ordering(), "mode": mode, "message_handler": hear}
        async with (
            started(Http(url=dual, protocol=protocol, isolation="trial"), "it") as source,
            source.open(sample, "t") as context,
            connected(context.servers[0].url or "", options) as client,
        ):
            (reached,) = context.servers
            assert reached.log is not None
            listed = await client.list_tools()
            answers = [said(await client.call_tool(name)) for name in ("spoken", "order")]
            if client.protocol_version < spoken:
                await client.set_logging_level("info")
                await client.subscribe_resource("note://first")
            await client.call_tool("work")
            asked = [(each.method, each.answered_by) for each in reached.log.exchanges if each.answered_by == "agent"]
            calls = [call.name for call in reached.log.calls]
            hints = (listed.ttl_ms, listed.cache_scope)
            # What concerns no request comes by a stream of its own, perhaps after the answer.
            news = sorted([await heard.get() for _ in told])
            return [answers, client.protocol_version, hints, asked, calls, news, heard.empty()]

    hints = (60_000, "public") if by_agent == NEW else (0, "private")
    asked = [("elicitation/create", "agent"), ("roots/list", "agent")]
    expected = [[spoken, "large into file:///mine"], by_agent, hints, asked, ["spoken", "order", "work"], told, True]
    assert expected == asyncio.run(asyncio.wait_for(run(), 30))


def described(answers: dict[str, Any], protocol: Any) -> Stdio:
    return Stdio(command=sys.executable, args=("-c", STDIO, json.dumps(answers)), protocol=protocol)


def shaken(version: str) -> dict[str, Any]:
    begun = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "it", "version": "1"}}
    return {"initialize": {"result": begun}, "tools/list": MODERN["tools/list"]}


REFUSED = {"initialize": error(-32603)}


@pytest.mark.parametrize(
    ("answers", "protocol", "told"),
    [
        ({**MODERN, **REFUSED}, OLD, f"speaks the revision {NEW} of MCP and not {OLD}; write `protocol: {NEW}`, or"),
        (shaken("2025-06-18"), OLD, f"speaks the revision 2025-06-18 of MCP and not {OLD}; leave `protocol` out"),
        ({**shaken(OLD), "server/discover": UNKNOWN}, NEW, f"{OLD} of MCP and not {NEW}; write `protocol: {OLD}`, or"),
        ({**REFUSED, "server/discover": UNKNOWN}, NEW, "did not come up: no such method$"),
        ({**REFUSED, "server/discover": UNKNOWN}, "newest", "did not come up: the license has expired$"),
        ({**REFUSED, "server/discover": UNKNOWN}, OLD, "did not come up: the license has expired$"),
    ],
    ids=str,
)
def test_server_that_does_not_speak_the_revision_is_told_by_what_it_speaks(
    answers: dict[str, Any], protocol: Any, told: str
) -> None:
    with pytest.raises(PreflightError, match=told):
        listed(described(answers, protocol))


def test_server_before_2026_is_told_by_what_it_speaks_and_not_by_its_refusal(listening: Callable[..., Any]) -> None:
    with pytest.raises(PreflightError, match=f"{OLD} of MCP and not {NEW}; write `protocol: {OLD}`, or leave it out$"):
        listed(Http(url=listening("sessions").url, protocol="2026-07-28"))


def test_server_that_comes_back_in_another_revision_fails_the_trial(tmp_path: Path, sample: Sample) -> None:
    answers = [json.dumps({**MODERN, "initialize": UNKNOWN}), json.dumps(shaken(OLD))]
    begun = f"begun = __import__('pathlib').Path({str(tmp_path / 'begun')!r})"
    code = f"import sys\n{begun}\nsys.argv[1] = {answers!r}[begun.exists()]\nbegun.touch()\n{STDIO}"
    provider = Stdio(command=sys.executable, args=("-c", code, ""), isolation="trial")

    async def run() -> None:
        # The first attempt gets the process that was there for the list.
        async with started(provider, "it", start_ahead=2) as source:
            for trial in ("1", "2"):
                async with source.open(sample, trial):
                    pass

    with pytest.raises(ServerLostError, match=f"came back with the revision {OLD} of MCP in place of {NEW}"):
        asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize("discovered", [UNKNOWN, None, {"result": {"supportedVersions": [OLD], "capabilities": {}}}])
def test_newest_is_the_handshake_of_a_server_that_has_nothing_else(discovered: Any) -> None:
    provider = attrs.evolve(described({**shaken(OLD), "server/discover": discovered}, "newest"), startup_timeout=2)

    assert ("order",) == listed(provider)


def test_newest_is_asked_for_again_of_a_server_that_only_started_slowly() -> None:
    deaf = f"import sys\nsys.stdin.readline()\n{STDIO}"  # it does not answer the first request
    answers = json.dumps({**MODERN, **REFUSED})
    provider = Stdio(command=sys.executable, args=("-c", deaf, answers), protocol="newest", startup_timeout=1)

    assert ("order",) == listed(provider)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("type: http\n    url: http://127.0.0.1:9/mcp\n    tap: false", "'protocol' must go with the tap"),
        ("type: sse\n    url: http://127.0.0.1:9/sse", "HTTP\\+SSE ended with the revisions that begin by a handshake"),
    ],
)
@pytest.mark.parametrize("date", ["2026-07-28", "'2026-07-28'"])
def test_protocol_goes_with_the_tap_and_what_carries_it(project: Project, options: str, told: str, date: str) -> None:
    project.write(eval_yaml=f"contexts:\n  it:\n    {options}\n    protocol: {date}\n")

    found = project.keval("tools", "eval.yaml")

    assert 2 == found.code
    assert re.search(told, " ".join(found.stderr.split()))


COMPARED = """
dataset: {path: questions.jsonl}
metrics: [basic/contains]
agents: {openai: {model: simulated/any}, gadk: {model: simulated/any}, ms: {model: simulated/any}}
contexts:
  before: &server {type: http, url: "URL", protocol: 2025-11-25}
  after: {<<: *server, protocol: 2026-07-28}
conditions: {before: {contexts: [before]}, after: {contexts: [after]}}
baseline: before
"""


def test_same_server_is_compared_in_two_revisions(project: Project, dual: str) -> None:
    question = {"id": "q", "question": "Which revision is spoken?", "answer": "20"}
    project.write(eval_yaml=COMPARED.replace("URL", dual), questions_jsonl=json.dumps(question))

    run = project.keval("run", "eval.yaml", "--record")

    assert 0 == run.code, run.stderr
    manifest = project.read("manifest.json")
    conditions, spoken = manifest["conditions"], manifest["protocols"]
    assert {"gadk": {"before": OLD, "after": OLD}, "ms": {"before": OLD, "after": NEW}} == spoken
    assert [OLD, NEW] == [conditions[label]["servers"][label]["protocol"] for label in ("before", "after")]
    told = {}
    for trial in project.lines("trials.jsonl"):
        (call,) = trial["transcript"]["tool_calls"]
        told[trial["agent"], trial["condition"]] = [
            call["result"],
            [*trial["transcript"].get("protocols", {}).values()],
        ]
    # Agents in keval's own loop speak in memory, and ADK knows the handshake alone.
    expected = {("openai", "before"): [OLD, []], ("openai", "after"): [NEW, []]}
    expected |= {("gadk", "before"): [OLD, [OLD]], ("gadk", "after"): [NEW, [OLD]]}
    assert {**expected, ("ms", "before"): [OLD, [OLD]], ("ms", "after"): [NEW, [NEW]]} == told
    directory = str(project.run_directory())
    explained = project.keval("report", directory, "--explain").stdout
    assert "server after of after: MCP 2026-07-28; with the tap, agents spoke another: gadk 2025-11-25" in explained
    assert "MCP 2026-07-28" in project.keval("show", directory).stdout
    assert "MCP with the tap: after 2026-07-28" in project.keval("show", directory, "--trial", "ms/after/q/1").stdout

    replayed = project.keval("run", "eval.yaml", "--replay", directory, "-o", "again")

    (again,) = project.root.glob("again/*/*")
    assert (0, 0) == (replayed.code, project.keval("compare", "--exact", directory, str(again)).code), replayed.stderr
