"""What passes between agent and server beside calls: it passes both ways, and is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.shared.subscriptions import ToolsListChanged
from mcp.types import (
    ElicitResult,
    PromptReference,
    ResourceUpdatedNotification,
    SubscriptionFilter,
)

from keval import Sample
from keval.records.servers import CallLog
from keval_mcp import Http, Stdio
from keval_mcp.server.client import Accept, Client as ContextClient
from keval_mcp.tap.agent_session import Channel
from tests.contexts import started
from tests.plugins.mcp.agent_clients import answering, connected, ordering, said
from tests.processes import Listening

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

Body = Callable[[Client], Awaitable[Any]]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of a server with everything that the protocol has, in sessions."""
    one = Listening.start("tests.plugins.mcp.servers.conforming")
    yield f"http://127.0.0.1:{one.port}/mcp"
    one.stop()


@attrs.frozen
class Seen:
    """What a client made of the tap, and what the tap recorded."""

    answer: Any
    log: CallLog

    @property
    def passed(self) -> list[tuple[str, str, str | None]]:
        return [(exchange.method, exchange.sender, exchange.answered_by) for exchange in self.log.exchanges]


@pytest.fixture
def through(sample: Sample) -> Callable[..., Seen]:
    """Use a server through the tap: `through(provider, body, ...)` with what the client is made with."""

    async def run(provider: Any, body: Body, options: dict[str, Any]) -> Seen:
        async with started(provider, "every") as source, source.open(sample, "t") as context:
            (server,) = context.servers
            assert server.url is not None
            assert server.log is not None
            async with connected(server.url, options) as client:
                return Seen(await body(client), server.log)

    return lambda provider, body, **options: asyncio.run(asyncio.wait_for(run(provider, body, options), 30))


def test_resources_prompts_and_completion_pass_as_they_are(through: Any, url: str) -> None:
    async def read(client: Client) -> list[Any]:
        return [
            each.model_dump()
            for each in (
                await client.list_resources(),
                await client.list_resource_templates(),
                await client.read_resource("test://static-binary"),
                await client.list_prompts(),
                await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "ż"}),
                await client.complete(PromptReference(name="test_simple_prompt"), {"name": "a", "value": "b"}),
            )
        ]

    async def direct() -> list[Any]:
        async with connected(url, {}) as client:
            return await read(client)

    seen = through(Http(url=url), read)

    assert asyncio.run(direct()) == seen.answer
    methods = ["resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get"]
    assert [(method, "agent", "server") for method in [*methods, "completion/complete"]] == seen.passed
    assert {"uri": "test://static-binary"} == seen.log.exchanges[2].params
    (picture,) = (seen.log.exchanges[2].result or {})["contents"]
    assert "image/png" == picture["mimeType"]
    assert all(exchange.at and exchange.duration for exchange in seen.log.exchanges)


def test_a_refusal_passes_and_is_recorded(through: Any, url: str) -> None:
    async def refused(client: Client) -> str:
        with pytest.raises(MCPError) as error:
            await client.get_prompt("no_such_prompt")
        return error.value.message

    seen = through(Http(url=url), refused)

    assert [seen.answer] == [exchange.error for exchange in seen.log.exchanges]
    assert "no_such_prompt" in seen.answer


def test_logs_and_progress_come_before_the_result(through: Any, url: str) -> None:
    heard: list[Any] = []

    async def logged(message: Any) -> None:
        heard.append(message.data)

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def use(client: Client) -> list[Any]:
        await client.session.set_logging_level("info")
        heard.append(said(await client.call_tool("test_tool_with_logging")))
        heard.append(said(await client.call_tool("test_tool_with_progress", progress_callback=progressed)))
        return heard

    seen = through(Http(url=url), use, logging_callback=logged)

    logs = ["Tool execution started", "Tool processing data", "Tool execution completed"]
    steps = [(0, 100, "0 of 100"), (50, 100, "50 of 100"), (100, 100, "100 of 100")]
    assert [*logs, "done", *steps, "done"] == seen.answer
    assert [("logging/setLevel", "agent", "server"), *[("notifications/message", "server", None)] * 3] == seen.passed[
        :4
    ]
    assert [("notifications/progress", "server", None)] * 3 == seen.passed[4:]
    assert ["test_tool_with_logging", "test_tool_with_progress"] == [call.name for call in seen.log.calls]


def test_what_the_server_asks_is_answered_by_an_agent_that_can(through: Any, url: str, tmp_path: Path) -> None:
    async def use(client: Client) -> list[str]:
        sampled = await client.call_tool("test_sampling", {"prompt": "?"})
        elicited = await client.call_tool("test_elicitation", {"message": "well"})
        return [said(each) for each in (sampled, elicited, await client.call_tool("client_folders"))]

    seen = through(Http(url=url), use, **answering(tmp_path.as_uri()))

    sampled, elicited, folders = seen.answer
    assert ("LLM response: I think.", f"mine {tmp_path.as_uri()}") == (sampled, folders)
    assert '"response":"WELL"' in elicited
    methods = ("sampling/createMessage", "elicitation/create", "roots/list")
    assert [(method, "server", "agent") for method in methods] == seen.passed


def test_what_no_agent_answers_the_policy_does(through: Any, url: str, tmp_path: Path) -> None:
    async def use(client: Client) -> list[str]:
        filled = said(await client.call_tool("test_elicitation_sep1034_defaults"))
        declined = said(await client.call_tool("test_elicitation", {"message": "well"}))
        folders = said(await client.call_tool("client_folders"))
        with pytest.raises(MCPError, match="no client here answers sampling"):
            await client.call_tool("test_sampling", {"prompt": "?"})
        return [filled, declined, folders]

    client = ContextClient(elicitation=Accept({"name": "Ada", "unasked": 1}), roots=(tmp_path,))
    accepting = Http(url=url, client=client)
    filled, declined, folders = (seen := through(accepting, use)).answer

    assert '"name":"Ada","age":30' in filled
    assert '"action":"decline"' in declined  # it requires what neither policy nor schema has
    assert f"{tmp_path.name} {tmp_path.as_uri()}" == folders
    first, *_, last = seen.log.exchanges
    assert ("accept", None) == ((first.result or {})["action"], first.error)
    assert (None, "no client here answers sampling/createMessage") == (last.result, last.error)
    methods = (*["elicitation/create"] * 2, "roots/list", "sampling/createMessage")
    assert [(method, "server", "policy") for method in methods] == seen.passed


def test_a_policy_that_declines_declares_nothing(through: Any, url: str, tmp_path: Path) -> None:
    async def use(client: Client) -> list[Any]:
        form = said(await client.call_tool("test_elicitation_sep1034_defaults"))
        return [form, (await client.call_tool("client_capabilities")).structured_content]

    declining = through(Http(url=url), use)
    filling = through(Http(url=url, client=ContextClient(elicitation="defaults", roots=(tmp_path,))), use)

    assert ['Elicitation completed: {"action":"decline"}', {"result": []}] == declining.answer
    assert [("elicitation/create", "server", "policy")] == declining.passed
    assert '"name":"John Doe"' in filling.answer[0]
    assert {"result": ["elicitation", "roots"]} == filling.answer[1]


def test_a_subscriber_hears_of_changes(through: Any, url: str) -> None:
    heard: list[str] = []
    changed = asyncio.Event()

    async def message(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            heard.append(str(message.params.uri))
            changed.set()

    async def use(client: Client) -> list[str]:
        await client.session.subscribe_resource("test://watched-resource")
        await client.call_tool("change_watched")
        await changed.wait()
        await client.session.unsubscribe_resource("test://watched-resource")
        return heard

    seen = through(Http(url=url), use, message_handler=message)

    assert ["test://watched-resource"] == seen.answer
    expected = {("resources/subscribe", "agent", "server"), ("notifications/resources/updated", "server", None)}
    assert expected <= {*seen.passed}


def test_a_call_that_the_agent_cancels_is_cancelled_at_the_server(through: Any, url: str) -> None:
    waiting = asyncio.Event()

    async def never(context: Any, params: Any) -> ElicitResult:
        waiting.set()
        await asyncio.sleep(60)
        raise AssertionError

    async def use(client: Client) -> None:
        call = asyncio.create_task(client.call_tool("test_elicitation", {"message": "well"}))
        await waiting.wait()
        call.cancel()
        await asyncio.wait({call})
        await client.call_tool("test_simple_text")

    seen = through(Http(url=url), use, elicitation_callback=never)

    cancelled, after = seen.log.calls
    assert "the agent gave the call up before the server answered" == cancelled.error
    assert after.error is None


def test_only_what_needs_a_session_gets_one(server: Callable[..., Stdio], sample: Sample, url: str) -> None:
    async def begun(provider: Any, **capabilities: Any) -> list[Any]:
        asked = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "c"}}
        async with started(provider, "s") as source, source.open(sample, "t") as context, httpx2.AsyncClient() as http:
            message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
            accept = {"accept": "application/json, text/event-stream"}
            answer = await http.post(context.servers[0].url or "", json=message, headers=accept)
            return ["mcp-session-id" in answer.headers, answer.json()["result"]["protocolVersion"]]

    plain = server("plain", isolation="trial")

    assert [False, "2025-06-18"] == asyncio.run(begun(plain))
    assert [True, "2025-06-18"] == asyncio.run(begun(plain, sampling={}))
    assert [True, "2025-06-18"] == asyncio.run(begun(Http(url=url)))


@pytest.mark.parametrize(("mode", "by"), [("auto", "agent"), ("auto", "policy"), ("own agent", "policy")])
def test_a_server_without_sessions_is_told_what_it_needs(
    server: Callable[..., Stdio], sample: Sample, tmp_path: Path, mode: str, by: str
) -> None:
    # What the context's client declares, it answers for the agent, too.
    declaring = ContextClient(elicitation="defaults", roots=(tmp_path,))

    async def use() -> tuple[Any, CallLog]:
        provider = server("modern", client=declaring if by == "policy" else ContextClient())
        async with started(provider, "modern") as source, source.open(sample, "t") as context:
            (reached,) = context.servers
            assert reached.channel is not None
            assert reached.log is not None
            if mode == "own agent":
                (block,) = (await reached.channel.call_tool("order", {}))["content"]
                return json.loads(block["text"]), reached.log
            async with connected(reached.url or "", ordering()) as client:
                assert client.instructions == "Order here."
                return json.loads(said(await client.call_tool("order"))), reached.log

    told, log = asyncio.run(asyncio.wait_for(use(), 30))

    form, folders = told["given"]["form"], told["given"]["folders"]
    assert ("accept", {"size": "large" if by == "agent" else "small"}) == (form["action"], form["content"])
    assert ["mine" if by == "agent" else tmp_path.name] == [root["name"] for root in folders["roots"]]
    assert {"elicitation", "roots"} <= {*told["can"]}
    asked = [(exchange.method, exchange.answered_by) for exchange in log.exchanges]
    assert [("elicitation/create", by), ("roots/list", by)] == asked
    assert [("order", 1)] == [(call.name, call.executions) for call in log.calls]


@pytest.mark.parametrize("way", ["http", "memory"])
def test_an_agent_without_a_session_listens_until_its_attempt_ends(
    server: Callable[..., Stdio], sample: Sample, way: str
) -> None:
    async def use() -> list[Any]:
        async with started(server("modern", dynamic_tools="follow"), "modern") as source, AsyncExitStack() as attempt:
            (reached,) = (await attempt.enter_async_context(source.open(sample, "t"))).servers
            assert isinstance(reached.channel, Channel)
            passage = reached.channel.passage
            there = (reached.url or "") if way == "http" else reached.channel.streams()
            async with Client(there) as client:
                async with client.listen(tools_list_changed=True) as given_up:
                    assert not passage.busy
                async with client.listen(tools_list_changed=True, prompts_list_changed=True) as heard:
                    one = {"name": "other", "inputSchema": {"type": "object"}}
                    passage.relisted(attrs.evolve(passage.listing, tools=(one,)))
                    event = await anext(aiter(heard))
                    tools = [tool.name for tool in (await client.list_tools()).tools]
                    await passage.close()
                    rest = [each async for each in heard]
                return [given_up.honored, heard.honored, event, tools, rest, passage.agents]

    honoured = SubscriptionFilter(tools_list_changed=True)
    expected = [honoured, honoured, ToolsListChanged(), ["other"], [], []]
    assert expected == asyncio.run(asyncio.wait_for(use(), 20))


def test_half_a_character_is_refused_before_the_server(server: Callable[..., Stdio], sample: Sample) -> None:
    async def use() -> list[Any]:
        async with started(server("plain"), "plain") as source, source.open(sample, "t") as context:
            channel = context.servers[0].channel
            assert channel is not None
            bad = await channel.call_tool("data", {"city": "\ud83d"})
            return [bad["isError"], (await channel.call_tool("data", {}))["structuredContent"]["wind"]]

    assert [True, None] == asyncio.run(use())
