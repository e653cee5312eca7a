"""What models are sent, over every wire: the servers' instructions once, and the transcript has the first request."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import attrs
import pytest
from starlette.types import Message, Receive, Scope, Send

from keval import Run, open_run
from keval.records.servers import ServerListing
from keval_gateway import ChatCall, ChatReply, ChatRequest, wire_urls
from keval_gateway.app import build_app
from keval_gateway.process import RunningGateway
from keval_loopback.serving import serve
from tests.agents.servers.library import INSTRUCTIONS
from tests.conftest import Project
from tests.processes import Listening

AGENTS = {
    "gadk-gemini": "{type: gadk, model: simulated/m, api: gemini}",
    "gadk-chat": "{type: gadk, model: simulated/m, api: chat}",
    "gadk-responses": "{type: gadk, model: simulated/m, api: responses}",
    "gadk-anthropic": "{type: gadk, model: simulated/m, api: anthropic}",
    "ms-chat": "{type: ms, model: simulated/m}",
    "ms-responses": "{type: ms, model: simulated/m, api: responses}",
    "openai-chat": "{type: openai, model: simulated/m}",
    "openai-responses": "{type: openai, model: simulated/m, api: responses}",
    "anthropic": "{type: anthropic, model: simulated/m}",
    "claude-code": "{type: claude-code, model: simulated/m}",
}
CONFIG = """
name: requests
agents: {{{agents}}}
contexts:
  library: {{type: http, url: "{url}"}}
  library_hidden: {{type: http, url: "{url}", server_instructions: false}}
  library_direct: {{type: http, url: "{url}", tap: false}}
conditions:
  shown: {{contexts: [library], system_prompt: "Be brief."}}
  hidden: {{contexts: [library_hidden], system_prompt: "Be brief."}}
  direct: {{contexts: [library_direct], system_prompt: "Be brief."}}
dataset: {{path: questions.jsonl}}
metrics: [basic/contains]
"""
CALLS: dict[str, dict[str, Any]] = {
    "search": {"words": "Moby Dick"},
    "lend": {
        "session": "reading",
        "thread": 3,
        "tools": ["lamp"],
        "tool_choice": "auto",
        "options": {"days": 7},
        "chat_options": {},
        "conversation_id": "c1",
        "response_format": "card",
    },
    "declared": {},
}
ADK_MARK = "UNTRUSTED_TOOL_DESCRIPTION"
HEADING = "# MCP Server Instructions"


@attrs.define
class Sent:
    """A run of every agent under every condition, and the bodies that reached the model, by trial."""

    project: Project
    bodies: dict[str, list[bytes]] = attrs.field(factory=dict)

    @property
    def run(self) -> Run:
        return open_run(self.project.run_directory())


def _respond(request: ChatRequest) -> ChatReply:
    if any(message.role == "tool" for message in request.messages):
        return ChatReply("Shelf 7.")
    names = {tool.name.rpartition("__")[2]: tool.name for tool in request.tools}
    return ChatReply("", tuple(ChatCall(names[name], arguments) for name, arguments in CALLS.items()))


def _served(sent: Sent) -> Any:
    """A gateway that keeps the bodies of the requests that it answers."""
    app = build_app(_respond, token="a-key")

    async def serving(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if b"x-keval-trial" not in headers:
            await app(scope, receive, send)
            return
        body = bytearray()

        async def keeping() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        await app(scope, keeping, send)
        sent.bodies.setdefault(unquote(headers[b"x-keval-trial"].decode()), []).append(bytes(body))

    return serving


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    sent = Sent(Project(tmp_path_factory.mktemp("requests")))

    @asynccontextmanager
    async def here(*args: Any, **rest: Any) -> AsyncIterator[RunningGateway]:
        async with serve(_served(sent)) as base:
            yield RunningGateway(wire_urls(base), "a-key")

    installed = importlib.util.find_spec("claude_agent_sdk") is not None
    agents = ", ".join(f"{name}: {agent}" for name, agent in AGENTS.items() if installed or name != "claude-code")
    server = Listening.start("tests.agents.servers.library")
    url = f"http://127.0.0.1:{server.port}/mcp"
    sent.project.write(
        requests_yaml=CONFIG.format(agents=agents, url=url),
        questions_jsonl='{"id": "q1", "question": "Where is Moby Dick?", "expect": {"contains": "7"}}\n',
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keval_gateway.run_gateway", here)
        outcome = sent.project.run("requests.yaml", "-j", "8")
    server.stop()
    assert outcome.code == 0, outcome.stderr
    return sent


@pytest.fixture(params=[*AGENTS])
def agent(request: pytest.FixtureRequest) -> str:
    if request.param == "claude-code":
        pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is installed apart")
    return str(request.param)


def texts(value: object) -> Iterator[str]:
    """Every text in a request, wherever its API has it."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from texts(item)
        case list():
            for item in value:
                yield from texts(item)


def offers(value: object) -> Iterator[tuple[str, tuple[str, object]]]:
    """The tools in a request by their own names: each with its description and its schema."""
    match value:
        case list():
            for item in value:
                yield from offers(item)
        case {"function": function} | {"functionDeclarations": function}:
            yield from offers(function)
        case {"name": name, "description": description, **rest}:
            (schema,) = (rest[key] for key in ("parameters", "parameters_json_schema", "input_schema") if key in rest)
            yield name.rpartition("__")[2], (bare(description), bare(schema))


def bare(value: Any) -> Any:
    """A value without the marks that ADK puts around every description."""
    match value:
        case str():
            return value.removeprefix(f"<<<BEGIN_{ADK_MARK}>>>\n").removesuffix(f"\n<<<END_{ADK_MARK}>>>")
        case dict():
            return {key: bare(item) for key, item in value.items()}
        case list():
            return [bare(item) for item in value]
    return value


@pytest.mark.slow
def test_a_server_s_instructions_are_in_every_request_once(sent: Sent, agent: str) -> None:
    section = f"Be brief.\n\n{HEADING}\n\nThe following MCP servers have provided instructions for how to use their"
    section += f" tools and resources:\n\n## library\n\n{INSTRUCTIONS}"

    for condition, name in (("shown", "library"), ("direct", "library_direct")):
        requests = sent.bodies[f"{agent}/{condition}/q1/1"]
        found = ["\0".join(texts(json.loads(body))) for body in requests]
        expected = section.replace("## library", f"## {name}")
        assert [2, *[(1, 1)] * 2] == [len(found), *((text.count(expected), text.count(INSTRUCTIONS)) for text in found)]


def test_the_tools_are_offered_as_the_server_defines_them(sent: Sent, agent: str) -> None:
    listing = sent.run.manifest.conditions["shown"].servers["library"].listing
    assert listing is not None
    tools = ServerListing.parse(sent.run.blob(listing)).tools
    first = json.loads(sent.bodies[f"{agent}/shown/q1/1"][0])

    added = {"additionalProperties": False} if agent == "ms-responses" else {}  # by the framework
    expected = {tool["name"]: (tool["description"], {**tool["inputSchema"], **added}) for tool in tools}
    assert {*CALLS} == {*expected}
    assert expected == dict(offers(first["tools"]))


def test_hidden_instructions_reach_no_model(sent: Sent, agent: str) -> None:
    found = "".join(text for body in sent.bodies[f"{agent}/hidden/q1/1"] for text in texts(json.loads(body)))

    assert ("Be brief." in found, HEADING in found, INSTRUCTIONS in found) == (True, False, False)


@pytest.mark.parametrize("condition", ["shown", "direct"])
def test_requests_and_arguments_arrive_as_they_are_recorded(sent: Sent, agent: str, condition: str) -> None:
    trial = f"{agent}/{condition}/q1/1"

    transcript = sent.run.trial(trial).transcript

    assert transcript is not None
    assert transcript.request is not None
    assert sent.bodies[trial][0] == sent.run.blob(transcript.request)
    calls = {call.name: call for call in transcript.tool_calls}
    arguments = CALLS["lend"]
    assert (arguments, json.dumps([*arguments.values()])) == (dict(calls["lend"].arguments), calls["lend"].result)
    if condition == "direct":
        # Claude Code answers for its roots and asks its user, who is none, by itself. No other client declares what it
        # would only refuse.
        declared = {"roots", "elicitation"} if agent == "claude-code" else set()
        assert declared == set(json.loads(calls["declared"].result or ""))


def test_show_prints_the_first_request_of_a_trial(sent: Sent) -> None:
    trial = "ms-chat/shown/q1/1"

    outcome = sent.project.keval("show", "--trial", trial, "--request", str(sent.project.run_directory()))

    assert (json.loads(sent.bodies[trial][0]), "") == (outcome.data, outcome.stderr)
