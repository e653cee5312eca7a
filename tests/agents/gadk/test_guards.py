"""A trial whose tools or servers were lost fails; it is never an answer. Directly, over stdio and over HTTP."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from keval import Sample
from keval.plugin import Context, McpServer, ServerLostError, ToolsMissingError, TranscriptBuilder
from keval.records.servers import CallLog
from keval_gateway import ChatCall, ChatReply, ChatRequest

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver, WebServer

OSLO = ChatCall("get_weather", {"city": "Oslo"})


def test_a_server_that_is_not_there_over_http(driver: Driver, http_server: McpServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"

    with pytest.raises(ServerLostError, match=r"'weather' was lost: .*connect") as raised:
        driver.run(lambda _: ChatReply("Sunny."), Context(servers=(attrs.evolve(http_server, url=url),)))

    assert raised.value.retryable
    assert driver.requests == []


def test_a_server_that_is_not_there_over_stdio(driver: Driver, stdio_server: McpServer) -> None:
    broken = attrs.evolve(stdio_server, args=("-c", "raise SystemExit('no such station')"))

    with pytest.raises(ServerLostError, match=r"'weather' was lost: .*no such station"):
        driver.run(lambda _: ChatReply("Sunny."), Context(servers=(broken,)))

    assert driver.requests == []


def test_a_server_without_a_tool_that_the_condition_promises(driver: Driver, http_server: McpServer) -> None:
    wanting = attrs.evolve(http_server, tools=(*http_server.tools, "get_tides"))
    builder = TranscriptBuilder()

    with pytest.raises(ToolsMissingError, match="without get_tides"):
        driver.run(lambda _: ChatReply("Sunny."), Context(servers=(wanting,), builder=builder))

    assert driver.requests == []
    assert builder.transcript().messages == ()  # not even asked


def test_a_server_with_a_tool_of_no_condition(driver: Driver, http_server: McpServer) -> None:
    wanting = attrs.evolve(http_server, tools=tuple(set(http_server.tools) - {"hang"}))
    builder = TranscriptBuilder()

    with pytest.raises(ToolsMissingError, match=": with hang;"):
        driver.run(lambda _: ChatReply("Sunny."), Context(servers=(wanting,), builder=builder))

    assert driver.requests == []
    assert builder.transcript().messages == ()  # not even asked


def test_a_tool_that_goes_away_between_two_turns(driver: Driver, tides_server: McpServer) -> None:
    builder = TranscriptBuilder()

    def respond(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply("Forgotten.")
        return ChatReply(calls=(ChatCall("forget_tides", {}),))

    with pytest.raises(ToolsMissingError, match="without get_tides"):
        driver.run(
            respond, Context(servers=(tides_server,), builder=builder), Sample("s1", "Forget.", turns=("Tides?",))
        )

    assert len(driver.requests) == 2
    assert builder.transcript().tools == ("forget_tides",)


def test_a_stdio_server_that_dies_in_a_call(driver: Driver, stdio_server: McpServer, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    builder = TranscriptBuilder()

    with pytest.raises(ServerLostError, match=r"'weather' was lost: .*; it wrote: the weather station caught fire"):
        driver.run(
            lambda _: ChatReply(calls=(ChatCall("die", {"path": str(runs)}),)),
            Context(servers=(stdio_server,), builder=builder),
        )

    (call,) = builder.transcript().tool_calls
    assert call.name == "die"
    assert call.error is not None
    assert len(driver.requests) == 1
    assert runs.read_text(encoding="utf-8") == "run\n"  # it was not called again


def test_an_http_server_that_dies_in_a_call(driver: Driver, mortal_server: WebServer, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    builder = TranscriptBuilder()

    with pytest.raises(ServerLostError, match="'weather' was lost: "):
        driver.run(
            lambda _: ChatReply(calls=(ChatCall("die", {"path": str(runs)}),)),
            Context(servers=(mortal_server.record,), builder=builder),
        )

    (call,) = builder.transcript().tool_calls
    assert call.error is not None
    assert len(driver.requests) == 1
    assert runs.read_text(encoding="utf-8") == "run\n"  # it was not called again


def _killing_the_server_then(answer: ChatReply, request: ChatRequest) -> ChatReply:
    """Ask for the server's process id, and when it comes, end that process and answer."""
    asked = request.messages[-1]
    if asked.role == "user":
        return ChatReply(calls=(ChatCall("process_id", {}),))
    if asked.text.isdecimal():
        os.kill(int(asked.text), signal.SIGKILL)
    return answer


def test_a_stdio_server_that_dies_between_two_calls_is_not_replaced(driver: Driver, stdio_server: McpServer) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        return _killing_the_server_then(ChatReply(calls=(OSLO,)), request)

    builder = TranscriptBuilder()
    with pytest.raises(ServerLostError):
        driver.run(respond, Context(servers=(stdio_server,), builder=builder), api="anthropic")

    assert len(driver.requests) == 2
    assert [call.result is None for call in builder.transcript().tool_calls] == [False, True]


def test_a_stdio_server_that_dies_between_two_turns_is_not_replaced(driver: Driver, stdio_server: McpServer) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        return _killing_the_server_then(ChatReply("Done."), request)

    with pytest.raises(ServerLostError):
        driver.run(respond, Context(servers=(stdio_server,)), Sample("s1", "One?", turns=("Two?",)), api="anthropic")

    assert len(driver.requests) == 2


def test_an_http_server_that_dies_before_a_call(driver: Driver, mortal_server: WebServer) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        mortal_server.stop()
        return ChatReply(calls=(OSLO,))

    with pytest.raises(ServerLostError):
        driver.run(respond, Context(servers=(mortal_server.record,)))

    assert len(driver.requests) == 1


def test_an_http_server_that_was_restarted_fails_this_trial_and_serves_the_next(
    driver: Driver, mortal_server: WebServer
) -> None:
    def restart(request: ChatRequest) -> ChatReply:
        mortal_server.stop()
        mortal_server.start()
        return ChatReply(calls=(OSLO,))

    def respond(request: ChatRequest) -> ChatReply:
        return ChatReply("Done.") if request.messages[-1].role == "tool" else ChatReply(calls=(OSLO,))

    with pytest.raises(ServerLostError, match="Session not found"):
        driver.run(restart, Context(servers=(mortal_server.record,)))
    transcript = driver.run(respond, Context(servers=(mortal_server.record,)))

    assert [call.result for call in transcript.tool_calls] == ["Oslo: 21 degrees, metric"]


def test_an_http_server_that_was_restarted_serves_on_where_adk_speaks_the_protocol_without_sessions(
    driver: Driver, mortal_server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_ENABLE_MCP_MODERN_PROTOCOL", "1")

    def respond(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply("Done.")
        mortal_server.stop()
        mortal_server.start()
        return ChatReply(calls=(OSLO,))

    transcript = driver.run(respond, Context(servers=(mortal_server.record,)))

    assert [call.result for call in transcript.tool_calls] == ["Oslo: 21 degrees, metric"]
    assert [len(request.tools) for request in driver.requests] == [len(mortal_server.record.tools)] * 2


def test_an_http_server_that_was_restarted_between_calls_is_no_silent_loss_of_tools(
    driver: Driver, mortal_server: WebServer
) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        mortal_server.stop()
        mortal_server.start()
        return ChatReply("Done.")

    with pytest.raises(ServerLostError):
        driver.run(respond, Context(servers=(mortal_server.record,)), Sample("s1", "One?", turns=("Two?",)))

    assert len(driver.requests) == 1


def test_a_call_that_is_never_answered(driver: Driver, http_server: McpServer, tmp_path: Path) -> None:
    call = ChatCall("hang", {"path": str(tmp_path / "pid")})
    impatient = attrs.evolve(http_server, timeout=1.0)

    with pytest.raises(ServerLostError, match="timed out"):
        driver.run(lambda _: ChatReply(calls=(call,)), Context(servers=(impatient,)))

    assert len(driver.requests) == 1


def test_what_the_tap_saw_lost_stops_the_trial_before_the_next_request(driver: Driver, http_server: McpServer) -> None:
    log = CallLog()

    def respond(request: ChatRequest) -> ChatReply:
        log.lost = "the upstream server died"
        return ChatReply(calls=(OSLO,))

    with pytest.raises(ServerLostError, match="the upstream server died"):
        driver.run(respond, Context(servers=(attrs.evolve(http_server, log=log),)))

    assert len(driver.requests) == 1


def test_what_the_tap_saw_lost_fails_a_trial_that_has_its_answer(driver: Driver, http_server: McpServer) -> None:
    log = CallLog()

    def respond(request: ChatRequest) -> ChatReply:
        log.lost = "the upstream server died"
        return ChatReply("Sunny.")

    with pytest.raises(ServerLostError, match="the upstream server died"):
        driver.run(respond, Context(servers=(attrs.evolve(http_server, log=log),)))
