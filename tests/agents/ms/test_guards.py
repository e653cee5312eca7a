"""What must never be scored as an answer: a trial whose tools did not load, or whose server was lost on the way.

Each guard is shown with direct connections (`tap: false`) over stdio and HTTP, where nobody but the adapter watches,
and behind a log as the tap keeps one.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from anyio import BrokenResourceError, ClosedResourceError
from httpx2 import ConnectError

from keval import Sample
from keval.plugin import McpServer, ServerLostError, ToolsMissingError
from keval.records.servers import CallLog
from keval_gateway import ChatCall, ChatReply, ChatRequest
from keval_ms.tools import HttpTool, Session


def then_answer(*calls: ChatCall) -> Any:
    """Return a model that calls each of these tools in turn, then answers in prose, whatever became of them."""
    return [*(ChatReply(calls=(call,)) for call in calls), ChatReply("It is sunny.")]


def ran(journal: Path) -> list[str]:
    """Return the calls that servers really ran."""
    return [line for line in journal.read_text("utf-8").splitlines() if not line.startswith("pid ")]


@pytest.fixture(params=["stdio", "http", "http --legacy", "sse"])
def server(request: Any, stdio: Any, start_toolbox: Any) -> McpServer:
    """A server of one's own, connected directly."""
    arguments = request.param.split()
    described: McpServer = stdio() if arguments == ["stdio"] else start_toolbox(*arguments).server(headers={"x-a": "b"})
    return described


def test_a_server_that_dies_during_a_call_fails_the_trial(play: Any, server: McpServer, journal: Path) -> None:
    outcome = play(then_answer(ChatCall("echo", {"text": "hm"}), ChatCall("die", {})), server)

    assert isinstance(outcome.error, ServerLostError)
    assert "MCP server 'toolbox' was lost during a call" in str(outcome.error)
    assert (ran(journal), len(outcome.requests)) == (["echo hm", "die"], 2)
    assert [call.name for call in outcome.transcript.tool_calls] == ["echo", "die"]
    assert outcome.transcript.tool_calls[1].error is not None
    assert outcome.transcript.output == ""


def test_a_server_that_stops_answering_fails_the_trial(play: Any, stdio: Any, journal: Path) -> None:
    outcome = play(then_answer(ChatCall("hang", {})), stdio(timeout=1.0))

    assert isinstance(outcome.error, ServerLostError)
    assert "timed out" in str(outcome.error)
    assert ran(journal) == ["hang"]


def test_a_server_restarted_between_calls_serves_on_where_there_are_no_sessions(
    play: Any, start_toolbox: Any, journal: Path
) -> None:
    outcome = play(_restarting(box := start_toolbox("http")), box.server())

    assert (outcome.error, outcome.transcript.output) == (None, "It is sunny.")
    assert ran(journal) == ["echo hm", "echo hm"]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("http",), ("http", "--legacy"), ("sse",)])
def test_a_server_that_is_gone_before_a_call_fails_the_trial(
    play: Any, start_toolbox: Any, arguments: tuple[str, ...]
) -> None:
    box = start_toolbox(*arguments)

    async def model(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply("It is sunny.")
        await asyncio.to_thread(box.stop)
        return ChatReply(calls=(ChatCall("echo", {"text": "hm"}),))

    outcome = play(model, box.server())

    assert isinstance(outcome.error, ServerLostError)
    assert (len(outcome.requests), outcome.transcript.output) == (1, "")


def _restarting(box: Any) -> Any:
    """Return a model that calls a tool, has its server restarted, and calls it again."""

    async def model(request: ChatRequest) -> ChatReply:
        results = [message for message in request.messages if message.role == "tool"]
        if len(results) == 1:
            await box.restart()
        return ChatReply("It is sunny.") if len(results) == 2 else ChatReply(calls=(ChatCall("echo", {"text": "hm"}),))

    return model


def test_a_server_restarted_between_turns_fails_the_trial(play: Any, start_toolbox: Any) -> None:
    box = start_toolbox("http", "--legacy")

    async def model(request: ChatRequest) -> ChatReply:
        if len(request.messages) == 1:
            return ChatReply("Hello.")
        if request.messages[-1].role == "tool":
            return ChatReply("It is sunny.")
        await box.restart()
        return ChatReply(calls=(ChatCall("echo", {"text": "hm"}),))

    outcome = play(model, box.server(), sample=Sample("s1", "Hello!", turns=("And the weather?",)))

    assert isinstance(outcome.error, ServerLostError)
    spoken = [(message.role, message.turn) for message in outcome.transcript.messages]
    assert spoken == [("user", 0), ("assistant", 0), ("user", 1), ("tool", 1)]


def test_a_call_on_a_closed_session_is_not_sent_again(play: Any, start_toolbox: Any, journal: Path) -> None:
    server = start_toolbox("http", "--legacy", "--forget").server()

    outcome = play(then_answer(ChatCall("echo", {"text": "once"})), server)

    assert isinstance(outcome.error, ServerLostError)
    assert ran(journal) == ["echo once"]
    assert (len(outcome.requests), outcome.transcript.output) == (1, "")


def test_an_http_error_in_place_of_an_answer_fails_the_trial(play: Any, start_toolbox: Any) -> None:
    outcome = play(
        then_answer(ChatCall("echo", {"text": "hm"})), start_toolbox("http", "--broken", "tools/call").server()
    )

    assert isinstance(outcome.error, ServerLostError)
    assert "Server returned an error response" in str(outcome.error)


def test_other_calls_of_the_same_reply_do_not_save_the_trial(play: Any, stdio: Any) -> None:
    script = [ChatReply(calls=(ChatCall("die", {}), ChatCall("hang", {}))), ChatReply("It is sunny.")]

    outcome = play(script, stdio())

    assert isinstance(outcome.error, ServerLostError)
    assert len(outcome.requests) == 1


@pytest.mark.parametrize(("tool", "error"), [("fail", "Error executing tool fail: the server is gone"), ("echo", None)])
def test_what_the_tap_saw_fails_the_trial(play: Any, toolbox: Any, tool: str, error: str | None) -> None:
    log = CallLog()

    def model(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply("It is sunny.")
        log.lost = "MCP server 'toolbox' ended with exit code 3"
        return ChatReply(calls=(ChatCall(tool, {"text": "the server is gone"}),))

    outcome = play(model, toolbox.server(log=log))

    assert isinstance(outcome.error, ServerLostError)
    assert str(outcome.error) == "MCP server 'toolbox' ended with exit code 3"
    assert [call.error for call in outcome.transcript.tool_calls] == [error]
    assert len(outcome.requests) == 1


@pytest.mark.parametrize("log", [None, CallLog()], ids=["direct", "tapped"])
def test_a_server_that_is_not_there_fails_the_trial_before_any_model_call(play: Any, toolbox: Any, log: Any) -> None:
    missing = toolbox.server(name="weather", url="http://127.0.0.1:9/mcp", log=log)

    outcome = play(then_answer(), missing)

    assert isinstance(outcome.error, ServerLostError)
    assert str(outcome.error).startswith("MCP server 'weather' did not come up: ")
    assert (outcome.requests, outcome.transcript.duration) == ([], None)


def test_a_server_that_does_not_list_its_tools_fails_the_trial(play: Any, start_toolbox: Any) -> None:
    outcome = play(then_answer(), start_toolbox("http", "--broken", "tools/list").server())

    assert isinstance(outcome.error, ServerLostError)
    assert str(outcome.error) == "MCP server 'toolbox' did not come up: Server returned an error response"
    assert outcome.requests == []


def test_a_process_that_ends_at_once_fails_the_trial_with_its_last_words(play: Any, stdio: Any) -> None:
    server = stdio(args=("-c", "raise SystemExit('no licence')"))

    outcome = play(then_answer(), server)

    assert isinstance(outcome.error, ServerLostError)
    assert str(outcome.error).endswith("its stderr ends:\nno licence")
    assert outcome.requests == []


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (("add", "die", "echo", "fail", "hang", "picture", "rain", "where am i"), ": without rain;"),
        (("add", "die", "echo", "fail", "hang", "picture"), ": with where am i;"),
    ],
)
def test_other_tools_than_listed_fail_the_trial_before_it_begins(
    play: Any, toolbox: Any, listed: Any, message: str
) -> None:
    outcome = play(then_answer(), toolbox.server(tools=listed))

    assert isinstance(outcome.error, ToolsMissingError)
    assert message in str(outcome.error)
    assert (outcome.requests, outcome.transcript.messages) == ([], ())


def test_tools_that_vanish_from_the_request_fail_the_trial(play: Any, toolbox: Any, monkeypatch: Any) -> None:
    from agent_framework import MCPStreamableHTTPTool

    outcome = None
    real = MCPStreamableHTTPTool._prepare_for_run

    async def losing(self: Any, kwargs: Any) -> None:
        await real(self, kwargs)
        self._functions[:] = [function for function in self._functions if function.name != "echo"]

    monkeypatch.setattr(MCPStreamableHTTPTool, "_prepare_for_run", losing)

    outcome = play(then_answer(), toolbox.server())

    assert isinstance(outcome.error, ToolsMissingError)
    assert ": without echo;" in str(outcome.error)
    assert (outcome.requests, "echo" in outcome.transcript.tools) == ([], False)


@pytest.mark.parametrize("error", [BrokenResourceError(), ClosedResourceError(), ConnectError("refused")])
def test_a_transport_that_breaks_below_the_sdk_is_a_lost_server(error: Exception) -> None:
    """The SDK of today turns most of these into errors of its own."""
    server = McpServer("toolbox", "http", url="http://127.0.0.1:9/mcp")

    async def lost() -> ServerLostError | None:
        return Session(server, HttpTool(server, lambda result: [], None)).loss(error)

    assert "was lost during a call" in str(asyncio.run(lost()))
