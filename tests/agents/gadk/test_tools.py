"""Tool calls as ADK makes and reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from keval import Sample
from keval.plugin import Context, McpServer
from keval_gadk import Api
from keval_gateway import ChatCall, ChatReply, ChatRequest

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver

TWO_TURNS = Sample("s1", "One?", turns=("Two?",))
OSLO = ChatCall("get_weather", {"city": "Oslo"})
LODZ = ChatCall("get_weather", {"city": "Łódź"})
TIDES = ChatCall("get_tides", {})

each_api = pytest.mark.parametrize("api", ["gemini", "chat", "responses", "anthropic"])


def _calling(call: ChatCall, request: ChatRequest) -> ChatReply:
    return ChatReply("Done.") if request.messages[-1].role == "tool" else ChatReply(calls=(call,))


@pytest.mark.parametrize("server", ["stdio_server", "http_server", "sse_server"])
def test_every_transport(driver: Driver, request: pytest.FixtureRequest, server: str) -> None:
    context = Context(servers=(request.getfixturevalue(server),))

    transcript = driver.run(lambda asked: _calling(ChatCall("get_weather", {"city": "Oslo"}), asked), context)

    (call,) = transcript.tool_calls
    assert (call.result, call.error) == ("Oslo: 21 degrees, metric", None)
    assert transcript.output == "Done."


def test_arguments_that_the_server_refuses(driver: Driver, http_server: McpServer) -> None:
    call = ChatCall("get_weather", {"town": "Oslo"})

    transcript = driver.run(lambda asked: _calling(call, asked), Context(servers=(http_server,)))

    (made,) = transcript.tool_calls
    assert made.arguments == {"town": "Oslo"}
    assert "city" in (made.error or "")
    assert transcript.output == "Done."


def test_a_tool_that_the_model_made_up(driver: Driver, http_server: McpServer) -> None:
    transcript = driver.run(
        lambda asked: _calling(ChatCall("get_tides", {"city": "Oslo"}), asked), Context(servers=(http_server,))
    )

    (call,) = transcript.tool_calls
    assert (call.name, call.arguments) == ("get_tides", {"city": "Oslo"})
    assert "no tool with that name" in (call.error or "")
    assert transcript.output == "Done."


def test_the_tools_of_two_servers(driver: Driver, http_server: McpServer, tides_server: McpServer) -> None:
    transcript = driver.run(
        lambda asked: _calling(ChatCall("get_tides", {"city": "Oslo"}), asked),
        Context(servers=(http_server, tides_server)),
    )

    assert transcript.tools == (*sorted(http_server.tools + tides_server.tools),)
    assert [call.result for call in transcript.tool_calls] == ["Oslo: high"]


@each_api
def test_ids_that_come_again_in_every_reply_do_not_mix_up_the_calls(
    driver: Driver, api: Api, http_server: McpServer
) -> None:
    replies = iter(
        [
            ChatReply(calls=(attrs.evolve(OSLO, id="call_0"), attrs.evolve(LODZ, id="call_1"))),
            ChatReply(calls=(attrs.evolve(LODZ, id="call_0"),)),
            ChatReply("First."),
            ChatReply(calls=(attrs.evolve(TIDES, id="call_0"), attrs.evolve(OSLO, id="call_1"))),
            ChatReply("Second."),
        ]
    )

    transcript = driver.run(lambda _: next(replies), Context(servers=(http_server,)), TWO_TURNS, api=api)

    oslo, lodz = "Oslo: 21 degrees, metric", "Łódź: 21 degrees, metric"
    assert [(call.id, call.model_call, call.turn, call.result) for call in transcript.tool_calls] == [
        ("call_0", 1, 0, oslo),
        ("call_1", 1, 0, lodz),
        ("call_0", 2, 0, lodz),
        ("call_0", 4, 1, None),
        ("call_1", 4, 1, oslo),
    ]
    assert transcript.model_calls == 5
