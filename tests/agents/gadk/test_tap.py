"""Behind keval's own tap, the record of the tap and that of ADK agree; and what the tap saw lost fails the trial."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from keval import Sample, Transcript
from keval.plugin import Context, McpServer
from keval_gateway import ChatCall, ChatReply, ChatRequest
from keval_mcp import Stdio
from keval_mcp.passage.passage import Passage
from tests.contexts import started

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver, Respond

SAMPLE = Sample("s1", "Weather?")
OSLO = ChatCall("get_weather", {"city": "Oslo"})
FAIL = ChatCall("fail", {"reason": "no wind"})


async def _tapped(
    driver: Driver, server: McpServer, respond: Respond, opened: list[Context], sample: Sample = SAMPLE
) -> Transcript:
    upstream = Stdio(command=server.command or "", args=server.args)
    async with started(upstream, "weather") as source, source.open(sample, "t1") as context:
        opened.append(context)
        return await driver.run_async(respond, context, sample)


def test_the_tap_and_adk_agree_on_the_calls(driver: Driver, stdio_server: McpServer) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        return ChatReply("Done.") if request.messages[-1].role == "tool" else ChatReply(calls=(OSLO, FAIL))

    opened: list[Context] = []
    transcript = asyncio.run(_tapped(driver, stdio_server, respond, opened))

    log = opened[0].servers[0].log
    assert log is not None
    assert [call.name for call in transcript.tool_calls] == ["get_weather", "fail"]
    seen = [(call.name, call.arguments, call.result, call.error) for call in log.calls]
    assert sorted(seen, key=str) == sorted(
        ((call.name, call.arguments, call.result, call.error) for call in transcript.tool_calls), key=str
    )


@pytest.mark.parametrize(("arguments", "listings"), [((), 1), (("announces",), 3)])
def test_the_tools_are_listed_once_if_they_cannot_change(
    driver: Driver, stdio_server: McpServer, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], listings: int
) -> None:
    asked: list[Passage] = []
    listing = Passage.list_tools

    async def list_tools(passage: Passage, *given: Any) -> Any:
        asked.append(passage)
        return await listing(passage, *given)

    monkeypatch.setattr(Passage, "list_tools", list_tools)
    server = attrs.evolve(stdio_server, args=("-m", "tests.agents.gadk.servers.announcer", *arguments))
    sample = Sample("s1", "Weather?", turns=("And now?",))

    asyncio.run(_tapped(driver, server, lambda _: ChatReply("Fine."), [], sample))

    assert listings == len(asked)
