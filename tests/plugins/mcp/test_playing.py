"""A server that is played says all that it said when it was recorded, and nothing of it is there any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from httpx2 import AsyncClient
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

from keval import Sample
from keval.plugin import Intervention, McpServer, PreflightError, ServerLostError
from keval.records.cassettes import ReplayMissError
from keval.records.interventions import Faults, FixedResult
from keval.records.servers import CallLog
from keval.seams.contexts import WorkingFolder
from keval_mcp import Http, Stdio
from keval_mcp.server.client import Client as ContextClient
from keval_testing import stub_server
from keval_weather import Weather
from tests.contexts import started
from tests.plugins.mcp.agent_clients import answering, asked, connected, headers_of, ordering, said
from tests.plugins.mcp.cassettes import Kept, MemoryCassette
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

Body = Callable[[Client], Awaitable[Any]]
Use = Callable[[McpServer], Awaitable[Any]]


@attrs.frozen
class Seen:
    """What an agent made of a server, and what the tap recorded of it."""

    answer: Any
    log: CallLog
    tool_listing: Any
    kept: Kept

    @property
    def recorded(self) -> dict[str, Any]:
        """What the transcript has of it, but for the times."""
        log = {**attrs.asdict(self.log, recurse=False), "calls": [_timeless(call) for call in self.log.calls]}
        return {**log, "exchanges": [_timeless(each) for each in self.log.exchanges]}


def _timeless(record: Any) -> Any:
    times = {name: None for name in ("duration", "at") if name in attrs.fields_dict(type(record))}
    return attrs.evolve(record, **times)


SAMPLE = Sample("one", "What is it?", facts={"preferences": {"dislikes_cold": True}})


async def _seen(provider: Any, use: Use, before: Kept, played: MemoryCassette | None, **changes: Any) -> Seen:
    kept = Kept()
    made = changes.get("interventions", ())
    keep = None if played else before
    async with (
        started(provider, "every", traffic_log=keep, cassette=played, interventions=made) as source,
        source.open(SAMPLE, "t", **{"traffic_log": kept, "cassette": played, **changes}) as context,
    ):
        (server,) = context.servers
        assert server.log is not None
        answer = await use(server)
    return Seen(answer, server.log, source.tool_listings, kept)


def recorded_and_played(
    provider: Any, use: Use, *, absent: Any = None, stop: Callable[[], object] = lambda: None, **changes: Any
) -> tuple[Seen, Seen, MemoryCassette]:
    """Use a server, and then, by the provider `absent` of a server that is nowhere, what was kept of it."""

    async def run() -> tuple[Seen, Seen, MemoryCassette]:
        before = Kept()
        live = await _seen(provider, use, before, None, **changes)
        stop()
        cassette = MemoryCassette(before, live.kept)
        return live, await _seen(absent or provider, use, before, cassette, **changes), cassette

    return asyncio.run(asyncio.wait_for(run(), 60))


def as_client(body: Body, **options: Any) -> Use:
    """Use a server with a client of the MCP SDK over HTTP, as agents of a process of their own do."""

    async def use(server: McpServer) -> Any:
        async with connected(server.url or "", options) as client:
            return await body(client)

    return use


def calls(*made: tuple[str, dict[str, Any]]) -> Use:
    """Make these calls one after the other in keval's own process, and return the results or errors."""

    async def use(server: McpServer) -> list[Any]:
        assert server.channel is not None
        answers: list[Any] = [[tool["name"] for tool in await server.channel.list_tools()]]
        for name, arguments in made:
            try:
                answers.append(await server.channel.call_tool(name, arguments))
            except ServerLostError as lost:
                answers.append((lost.kind, str(lost)))
            answers.append([tool["name"] for tool in await server.channel.list_tools()])
        return answers

    return use


@pytest.fixture
def nowhere() -> Stdio:
    """Describe a server whose command, folders and roots this machine does not have."""
    missing = Path("/no/such/folder")
    return Stdio(
        command="no-such-command",
        cwd=WorkingFolder(copy=missing),
        client=ContextClient(roots=(missing,)),
        isolation="condition",
    )


@pytest.fixture
def conforming() -> Iterator[Listening]:
    """A server with everything that the protocol has, in sessions."""
    one = Listening.start("tests.plugins.mcp.servers.conforming")
    yield one
    one.stop()


MORE = {
    "_meta": {"vendor/region": "eu", "io.modelcontextprotocol/serverInfo": {"name": "x", "version": "2"}},
    "news": [1],
}


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_all_that_a_server_says_as_it_begins_reaches_the_agent(nowhere: Stdio, method: str) -> None:
    begins = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "2"}}
    kept: dict[str, Any] = {"resultType": "complete", "ttlMs": 7, "cacheScope": "public"}
    able = {"tools": {}, "extensions": {"vendor/ui": {"mimeTypes": ["text/html"]}}}
    said: dict[str, Any] = {**begins, "capabilities": able, **MORE}
    listed: dict[str, Any] = {"tools": [{"name": "look", "inputSchema": {}}], "_meta": {"vendor/of": "list"}}
    if method == "server/discover":
        said = {**kept, "supportedVersions": ["2026-07-28"], "capabilities": able, **MORE}
        listed |= kept
    code = f"""
from tests.stdio_server import answer_each
def answer(method, params):
    if method == {method!r}:
        return {said!r}
    if method == "tools/list":
        return {listed!r}
    raise LookupError(method)
answer_each("x", answer, begins=False)
"""
    provider = Stdio(command="python", args=("-c", code), env=ENVIRONMENT, isolation="condition")

    async def ask(server: McpServer) -> Any:
        asking = asked(method)
        if method == "initialize":
            asking["params"] = {"protocolVersion": "2025-06-18"}
        async with AsyncClient() as client:
            begun = await client.post(str(server.url), json=asking, headers=headers_of(asking))
            asking = asked("tools/list")
            headers = {**headers_of(asking), "mcp-session-id": begun.headers.get("mcp-session-id", "")}
            headers = {name: value for name, value in headers.items() if value}
            tools = await client.post(str(server.url), json=asking, headers=headers)
            return [begun.json()["result"], json.loads(tools.text[tools.text.index("{") :])["result"]]

    renamed = (Intervention(rename={"look": "see"}),)
    live, played, _ = recorded_and_played(provider, ask, absent=nowhere, interventions=renamed)

    listed["tools"] = [{"name": "see", "inputSchema": {}}]
    assert [said, listed] == live.answer
    assert live.answer == played.answer


def test_everything_that_a_server_says_is_played_without_it(conforming: Listening, tmp_path: Path) -> None:
    heard: list[Any] = []

    async def logged(message: Any) -> None:
        heard.append(message.data)

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def use(client: Client) -> list[Any]:
        heard.clear()
        await client.session.set_logging_level("info")
        await client.session.subscribe_resource("test://watched-resource")
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("no_such_prompt")
        return [
            client.server_info,
            client.instructions,
            (await client.list_tools()).model_dump(),
            (await client.read_resource("test://static-binary")).model_dump(),
            (await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "ż"})).model_dump(),
            (await client.call_tool("test_image_content")).model_dump(),
            (await client.call_tool("test_error_handling")).model_dump(),
            said(await client.call_tool("test_tool_with_logging")),
            said(await client.call_tool("test_tool_with_progress", progress_callback=progressed)),
            said(await client.call_tool("test_sampling", {"prompt": "?"})),
            said(await client.call_tool("test_elicitation", {"message": "well"})),
            said(await client.call_tool("client_folders")),
            said(await client.call_tool("change_watched")),
            (refused.value.code, refused.value.message, refused.value.data),
            [*heard],
        ]

    url = f"http://127.0.0.1:{conforming.port}/mcp"
    live, played, cassette = recorded_and_played(
        Http(url=url),
        as_client(use, logging_callback=logged, **answering(tmp_path.as_uri())),
        absent=Http(url="http://127.0.0.1:9/mcp"),
        stop=conforming.stop,
    )

    assert live.answer == played.answer
    assert live.tool_listing == played.tool_listing
    assert live.recorded == played.recorded
    assert sorted(live.kept.told) == sorted(played.kept.told)
    *asked, _ = [each for each in cassette.answers if each is not None]
    assert [each.result for each in live.kept.of("asked")][:2] == asked[:2]
    kinds = {each.kind for each in live.kept.traffic.values()}
    assert {"opened", "call", "request", "notified", "asked", "told", "closed"} == kinds
    logs = ["Tool execution started", "Tool processing data", "Tool execution completed"]
    assert [*logs, (0, 100, "0 of 100"), (50, 100, "50 of 100"), (100, 100, "100 of 100")] == played.answer[-1]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["follow", "freeze", "fail"])
@pytest.mark.parametrize("unlock", ["unlock", "unlock_silently"])
def test_tools_that_changed_change_again(server: Callable[..., Stdio], nowhere: Stdio, how: Any, unlock: str) -> None:
    live, played, _ = recorded_and_played(
        server("changing", isolation="trial", dynamic_tools=how),
        calls((unlock, {}), ("enter", {})),
        absent=attrs.evolve(nowhere, dynamic_tools=how, isolation="trial"),
    )

    assert live.answer == played.answer
    assert live.recorded == played.recorded
    assert (how == "fail") is (played.log.contaminated is not None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        [("pid", {}), ("die", {}), ("pid", {}), ("echo", {"text": "x"})],
        [("quit", {}), ("pid", {})],
        [("hang", {}), ("pid", {})],
        pytest.param([("hang", {"everything": True}), ("pid", {})], marks=pytest.mark.slow),
        [("babble", {}), ("pid", {})],
        [("no_such_tool", {}), ("echo", {"text": "\ud83d"}), ("echo", {"text": "x"})],
    ],
    ids=["dies", "ends", "slow", "hangs", "babbles", "refused"],
)
def test_what_was_lost_or_late_is_so_again(
    bare: Callable[..., Stdio], nowhere: Stdio, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keval_mcp.server.upstream.CHECK_SECONDS", 0.5)

    live, played, _ = recorded_and_played(bare(timeout=0.3), calls(*made), absent=attrs.evolve(nowhere, timeout=0.3))

    assert live.answer == played.answer
    assert live.recorded == played.recorded


def test_attempt_that_lost_its_server_to_another_ones_call_is_a_bystander_again(
    bare: Callable[..., Stdio], nowhere: Stdio
) -> None:
    async def use(server: McpServer) -> str:
        assert server.channel is not None
        with pytest.raises(ServerLostError) as lost:
            await server.channel.call_tool("pid", {})
        return str(lost.value)

    async def run() -> list[Seen]:
        before, kept = Kept(), Kept()
        async with (
            started(bare(), "every", traffic_log=before) as source,
            source.open(SAMPLE, "rests", traffic_log=kept) as context,
            source.open(SAMPLE, "dies") as other,
        ):
            (server,), (dies,) = context.servers, other.servers
            assert server.channel is not None
            assert dies.channel is not None
            assert server.log is not None
            await server.channel.call_tool("pid", {})
            with pytest.raises(ServerLostError):
                await dies.channel.call_tool("die", {})
            live = Seen(await use(server), server.log, source.tool_listings, kept)

        async def again(server: McpServer) -> str:
            assert server.channel is not None
            await server.channel.call_tool("pid", {})
            return await use(server)

        return [live, await _seen(nowhere, again, before, MemoryCassette(before, kept))]

    live, played = asyncio.run(run())

    assert "server 'every' was lost between two calls of this trial" == live.answer == played.answer
    assert live.recorded == played.recorded
    assert played.log.bystander


def test_server_that_did_not_come_up_for_a_trial_does_not_again(
    server: Callable[..., Stdio], nowhere: Stdio, tmp_path: Path
) -> None:
    provider = server("bare", str(tmp_path / "starts"), isolation="trial")

    async def open_one(kept: Kept, before: Kept, played: MemoryCassette | None = None) -> str:
        keep = None if played else before
        async with started(nowhere if played else provider, "every", traffic_log=keep, cassette=played) as source:
            with pytest.raises(ServerLostError) as lost:
                async with source.open(SAMPLE, "t", traffic_log=kept, cassette=played):
                    raise AssertionError
            return f"{lost.value.kind}: {lost.value}"

    async def run() -> list[str]:
        before, kept = Kept(), Kept()
        live = await open_one(kept, before)
        return [live, await open_one(Kept(), before, MemoryCassette(before, kept))]

    live, played = asyncio.run(run())

    assert live == played
    assert live.startswith("tools_changed: server 'every' came back with other tools")


def test_parallel_calls_end_in_the_order_in_which_they_ended(server: Callable[..., Stdio], nowhere: Stdio) -> None:
    ended: list[str] = []

    async def use(reached: McpServer) -> list[str]:
        ended.clear()

        async def call(name: str) -> None:
            assert reached.channel is not None
            await reached.channel.call_tool(name, {})
            ended.append(name)

        await asyncio.gather(call("wait here"), call("wait/here"))
        return [*ended]

    live, played, _ = recorded_and_played(server("meeting"), use, absent=nowhere)

    assert ["wait/here", "wait here"] == live.answer == played.answer
    assert live.recorded == played.recorded


def test_call_that_the_agent_gave_up_is_given_up_again(bare: Callable[..., Stdio], nowhere: Stdio) -> None:
    kept = Kept()

    async def use(server: McpServer) -> None:
        assert server.channel is not None
        call = asyncio.create_task(server.channel.call_tool("hang", {}))
        await kept.called.wait()
        call.cancel()
        await asyncio.wait({call})
        await server.channel.call_tool("pid", {})

    async def run() -> list[Seen]:
        before = Kept()
        live = await _seen(bare(), use, before, None, traffic_log=kept)
        cassette = MemoryCassette(before, Kept(dict(kept.traffic)))
        kept.traffic.clear()
        kept.called.clear()
        return [live, await _seen(nowhere, use, before, cassette, traffic_log=kept)]

    live, played = asyncio.run(run())

    given_up, after = played.log.calls
    assert ("the agent gave the call up before the server answered", None) == (given_up.error, after.error)
    assert [None] == [each.ended for each in kept.of("call") if each.params["name"] == "hang"]
    assert live.recorded == played.recorded


@pytest.mark.parametrize("by", ["agent", "agent with a session", "policy"])
def test_server_without_sessions_gets_what_it_needs_again(
    server: Callable[..., Stdio], nowhere: Stdio, tmp_path: Path, by: str
) -> None:
    async def order(client: Client) -> str:
        return said(await client.call_tool("order"))

    able = {**ordering(), "mode": "auto" if by == "agent" else "legacy"}
    use = calls(("order", {})) if by == "policy" else as_client(order, **able)
    answering = ContextClient(elicitation="defaults", roots=(tmp_path,)) if by == "policy" else ContextClient()
    provider, absent = server("modern", client=answering), attrs.evolve(nowhere, client=answering)

    live, played, _ = recorded_and_played(provider, use, absent=absent)

    assert live.answer == played.answer
    assert live.recorded == played.recorded
    assert [("order", None), ("order", "asked")] == [
        (call.params["name"], call.params.get("requestState")) for call in played.kept.of("call")
    ]
    assert [by.partition(" ")[0]] * 2 == [each.answered_by for each in played.log.exchanges]


@pytest.mark.parametrize(("mode", "arguments"), [("legacy", ()), ("auto", ("modern",)), ("legacy", ("modern",))])
@pytest.mark.parametrize("tool", ["sampling", "elicitation", "roots"])
def test_tools_for_clients_with_capabilities_are_offered_changed_and_played_again(
    server: Callable[..., Stdio], nowhere: Stdio, tool: str, mode: str, arguments: tuple[str, ...]
) -> None:
    async def use(client: Client) -> list[Any]:
        names = [each.name for each in (await client.list_tools()).tools]
        return [names, said(await client.call_tool(tool)), said(await client.call_tool("say"))]

    renamed = (Intervention(rename={"echo": "say"}),)
    provider = server("choosy", *arguments, isolation="trial")
    able = {**answering("file:///mine"), "mode": mode}

    live, played, _ = recorded_and_played(provider, as_client(use, **able), absent=nowhere, interventions=renamed)

    names, called, _ = live.answer
    assert ["say", "elicitation", "roots", "sampling"] == names
    assert called.startswith(f"{tool} for ")
    assert live.answer == played.answer
    assert live.recorded == played.recorded
    assert (None, None) == (live.log.contaminated, live.log.lost)
    assert all(each.listing in {blob.sha256 for blob in live.log.blobs} for each in live.log.calls)


def test_agent_that_listens_to_a_server_without_sessions_hears_of_changes(
    server: Callable[..., Stdio], nowhere: Stdio
) -> None:
    async def change(client: Client) -> list[Any]:
        async with client.listen(tools_list_changed=True) as heard:
            alone = [said(await client.call_tool("unlock")), await anext(heard)]
            async with client.listen(resource_subscriptions=["note://a", "note://b"]) as updated:
                both = [said(await client.call_tool("touch")), await anext(updated)]
        tools = [tool.name for tool in (await client.list_tools()).tools]
        return [*alone, *both, tools]

    absent = attrs.evolve(nowhere, dynamic_tools="follow")

    use = as_client(change, mode="auto")
    live, played, _ = recorded_and_played(server("listened", dynamic_tools="follow"), use, absent=absent)

    alone, both = ["1 listening", ToolsListChanged()], ["2 listening", ResourceUpdated("note://a")]
    assert [*alone, *both, ["unlock", "drop", "touch", "enter"]] == live.answer
    assert live.answer == played.answer
    assert live.recorded == played.recorded
    told = ["notifications/tools/list_changed", "notifications/resources/updated"]
    assert told == [each.method for each in live.log.exchanges]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_weather_is_played_without_its_server(transport: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    teach = ("update_user_preferences", {"dislikes_cold": False})
    provider = Weather(transport=transport)
    started_processes: list[Any] = []

    async def nobody(*command: Any, **options: Any) -> None:
        started_processes.append(command)

    live, played, _ = recorded_and_played(
        provider,
        calls(("get_current_weather", {"city": "Paris"}), teach, ("get_user_preferences", {})),
        stop=lambda: monkeypatch.setattr("asyncio.create_subprocess_exec", nobody),
    )

    assert live.answer == played.answer
    assert live.recorded == played.recorded
    assert [] == started_processes
    assert any("Paris" in str(each) for each in played.answer)


def test_what_the_recording_does_not_have_ends_the_attempt(bare: Callable[..., Stdio], nowhere: Stdio) -> None:
    async def run() -> list[Any]:
        before = Kept()
        live = await _seen(bare(), calls(("echo", {"text": "x"})), before, None)

        async def use(server: McpServer) -> Any:
            assert server.channel is not None
            with pytest.raises(ReplayMissError) as missed:
                await server.channel.call_tool("echo", {"text": "y"})
            return missed.value

        seen = await _seen(nowhere, use, before, MemoryCassette(before, live.kept))
        return [str(seen.answer), seen.log.missed, [call.error for call in seen.log.calls], seen.log.lost]

    told, missed, errors, lost = asyncio.run(run())

    assert "the recording has no call tools/call of {'name': 'echo', 'arguments': {'text': 'y'}}" == told == missed
    assert ([told], None) == (errors, lost)


def test_server_that_was_not_recorded_cannot_be_played(nowhere: Stdio) -> None:
    async def run() -> None:
        async with started(nowhere, "every", cassette=MemoryCassette(Kept())):
            raise AssertionError

    with pytest.raises(PreflightError, match="nothing was kept"):
        asyncio.run(run())


def test_results_are_kept_below_the_interventions(bare: Callable[..., Stdio], nowhere: Stdio) -> None:
    changes = (
        Intervention(rename={"echo": "say"}, results=FixedResult("nothing")),
        Intervention(faults=Faults(0.5, seed=1)),
    )
    made = [("say", {"text": str(number)}) for number in range(6)]

    live, played, _ = recorded_and_played(bare(), calls(*made), absent=nowhere, interventions=changes)

    assert live.recorded == played.recorded
    failed = [call.error_kind is not None for call in live.log.calls]
    assert {True, False} == {*failed}
    sent = [text for text, fault in zip("012345", failed, strict=True) if not fault]
    assert [("echo", {"text": text}) for text in sent] == [
        (call.params["name"], call.params["arguments"]) for call in live.kept.of("call")
    ]
    assert sent == [(call.result or {})["content"][0]["text"] for call in live.kept.of("call")]


def test_the_source_leads_past_interventions_and_the_log_and_is_recorded(nowhere: Stdio) -> None:
    async def use(server: McpServer) -> list[Any]:
        assert server.channel is not None
        assert server.source is not None
        ways = (server.channel, server.source)
        listed = [[tool["name"] for tool in await way.list_tools()] for way in ways]
        called = [await server.channel.call_tool("seek", {"question": "?"})]
        called += [await server.source.call_tool(name, {}) for name in ("count", "look_up", "count")]
        return [listed, [result["content"][0]["text"] for result in called]]

    stub = Stdio(**{key: value for key, value in stub_server("stateful").items() if key != "type"}, isolation="trial")
    changes = Intervention(without=("count",), rename={"look_up": "seek"}, results=FixedResult("Nothing."))
    live, played, cassette = recorded_and_played(stub, use, absent=nowhere, interventions=(changes,))

    expected = [[["seek"], ["look_up", "count"]], ["Nothing.", "1", "It is so.", "2"]]
    assert expected == live.answer == played.answer
    assert ["seek"] == [call.name for call in live.log.calls] == [call.name for call in played.log.calls]
    assert ["look_up", "count", "look_up", "count"] == [each.params["name"] for each in cassette.kept.of("call")]
