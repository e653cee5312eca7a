"""A call that a server answers by a task is one call: it is changed, limited and recorded as any other is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from mcp import Client, MCPError
from mcp.client.extension import advertise
from mcp.types import ElicitResult

from keval import Sample, Transcript
from keval.plugin import Intervention
from keval.records.cassettes import ServerTraffic
from keval.records.interventions import Faults, FixedResult, RecordedResults
from keval.records.servers import CallLog
from keval.records.trial import Trial
from keval_gateway.trial_limits import TrialMeter
from keval_mcp import Stdio
from keval_mcp.server.client import Client as ContextClient
from keval_mcp.server.waiting import ProgressTimeout
from keval_replay.cassette import AttemptCassette
from keval_replay.matching import settled
from keval_replay.recorder import TrafficLog
from keval_replay.recording import RecordedAttempt
from keval_replay.run_diff import canonical_trial
from tests.contexts import started

OLD, NEW = "2025-11-25", "2026-07-28"
RELATED = "io.modelcontextprotocol/related-task"
ENDS = ("completed", "failed", "cancelled")


@attrs.define
class Agent:
    """An agent that makes calls as tasks, by the client of the SDK, which does not know 2025-11-25's tasks itself."""

    client: Client
    told: list[Any]

    @property
    def modern(self) -> bool:
        return self.client.protocol_version == NEW

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        request: dict[str, Any] = {"method": method, "params": params}
        options: Any = {}
        self.client.session._stamp(request, options)
        return await self.client.session._dispatcher.send_raw_request(method, request["params"], options)

    async def begin(self, where: str = "Kraków", **more: Any) -> dict[str, Any]:
        """Call the tool as a task, and return what answers it."""
        given = {"name": more.pop("name", "dig"), "arguments": {"where": where, **more}}
        asks = {} if self.modern else {"task": {"ttl": 5000}, "_meta": {"progressToken": "mine"}}
        return await self.ask("tools/call", **given, **asks)

    async def watch(self, task: str) -> dict[str, Any]:
        """Return the task when it is over."""
        while True:
            state = await self.ask("tasks/get", taskId=task)
            if state["status"] in ENDS:
                return state

    async def dig(self, **more: Any) -> list[Any]:
        """Make a call, and return how its task ended, and its result or error."""
        begun = await self.begin(**more)
        name = (begun if self.modern else begun["task"])["taskId"]
        state = await self.watch(name)
        if self.modern:
            return [state["status"], state.get("result") or state.get("error")]
        try:
            return [state["status"], await self.ask("tasks/result", taskId=name)]
        except MCPError as error:
            return [state["status"], {"code": error.code, "message": error.message}]


Use = Callable[[Agent], Awaitable[Any]]


@pytest.fixture(params=[OLD, NEW])
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def digging(server: Callable[..., Stdio], sample: Sample, revision: str) -> Callable[..., tuple[Any, CallLog]]:
    """Let an agent use the server in one attempt; return what it says, and what is recorded of it."""

    def dig(
        use: Use, way: str = "memory", able: bool = False, made: tuple[Intervention, ...] = (), **changes: Any
    ) -> tuple[Any, CallLog]:
        async def fill_in(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"depth": "mine"})

        async def run() -> tuple[Any, CallLog]:
            known = {"traffic_log": changes.pop("before", None), "cassette": changes.get("cassette")}
            answering = ContextClient(elicitation=() if able else "defaults")
            options = {"client": answering, "timeout": changes.pop("timeout", 60.0)}
            provider = server("tasked", revision, isolation="trial", **options)
            async with (
                started(provider, "dig", interventions=made, **known) as source,
                source.open(sample, "t", interventions=made, **changes) as context,
            ):
                (reached,) = context.servers
                assert reached.channel is not None
                assert reached.log is not None
                assert reached.url is not None
                there = reached.channel.streams() if way == "memory" else reached.url
                told: list[Any] = []

                async def hear(message: Any) -> None:
                    told.append(message)

                can: dict[str, Any] = {"mode": "legacy"} if revision == OLD else {}
                if able:
                    can["elicitation_callback"] = fill_in
                extensions = [advertise("io.modelcontextprotocol/tasks")] if revision == NEW else []
                async with Client(there, message_handler=hear, extensions=extensions, **can) as client:
                    said = await use(Agent(client, told))
            return said, reached.log

        return asyncio.run(asyncio.wait_for(run(), 30))

    return dig


def text(result: dict[str, Any]) -> str:
    return "".join(block["text"] for block in result["content"])


@pytest.mark.parametrize("way", ["memory", "http"])
def test_call_made_as_a_task_is_one_call(digging: Callable[..., Any], revision: str, way: str) -> None:
    (status, result), log = digging(Agent.dig, way)

    (call,) = log.calls
    assert ("completed", "flat") == (status, result["structuredContent"]["depth"])
    assert (text(result), None, 1, {"where": "Kraków"}) == (call.result, call.error, call.executions, call.arguments)
    assert ({"taskId": "t1"} if revision == OLD else None) == (result.get("_meta") or {}).get(RELATED)


CHANGES = {
    "empty": Intervention(results="empty"),
    "fixed": Intervention(results=FixedResult("nothing to see")),
    "scrambled": Intervention(results="scrambled"),
    "renamed": Intervention(rename={"dig": "search"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_interventions_reach_the_result_of_a_task(digging: Callable[..., Any], revision: str, change: str) -> None:
    name = "search" if change == "renamed" else "dig"

    async def use(agent: Agent) -> Any:
        begun = await agent.begin(name=name)
        task = (begun if agent.modern else begun["task"])["taskId"]
        results = []
        for _ in range(2):
            state = await agent.watch(task)
            results.append(state["result"] if agent.modern else await agent.ask("tasks/result", taskId=task))
        return results

    (result, again), log = digging(use, made=(CHANGES[change],))

    (call,) = log.calls
    assert result == again
    assert ("golden" in str(result), "golden" in str(call.result)) == (change == "renamed", change == "renamed")
    assert (text(result), None if change == "renamed" else change) == (call.result, call.changed)
    assert ("dig" if change == "renamed" else None) == call.tool
    related = (result.get("_meta") or {}).get(RELATED)
    assert revision == NEW or {"taskId": "t1"} == related


def test_fault_has_the_form_that_the_agent_asks_for(digging: Callable[..., Any], revision: str) -> None:
    async def use(agent: Agent) -> Any:
        begun = await agent.begin()
        if agent.modern:  # the server decides whether it makes a task of a call
            assert begun["resultType"] == "complete"
            return begun
        name = begun["task"]["taskId"]
        state, result = await agent.watch(name), await agent.ask("tasks/result", taskId=name)
        with pytest.raises(MCPError, match="too late"):
            await agent.ask("tasks/cancel", taskId=name)
        assert ("working", "failed", text(result)) == (begun["task"]["status"], state["status"], state["statusMessage"])
        return result

    result, log = digging(use, made=(Intervention(faults=Faults(error=1.0)),))

    (call,) = log.calls
    assert (True, text(result)) == (result["isError"], call.error)
    assert ("injected", 0) == (call.error_kind, call.executions)


def test_limit_of_calls_counts_a_task_once(digging: Callable[..., Any]) -> None:
    async def use(agent: Agent) -> Any:
        return await agent.dig(), await agent.begin(where="Gdańsk")

    ((status, _), refused), log = digging(use, meter=TrialMeter({"tool_calls": 1}))

    assert ("completed", 1) == (status, len(log.calls))
    assert "task" in refused or text(refused).startswith("the trial reached its limit of 1 tool call")


async def _cancel(agent: Agent) -> Any:
    begun = await agent.begin(how="never")
    name = (begun if agent.modern else begun["task"])["taskId"]
    await agent.ask("tasks/cancel", taskId=name)
    return await agent.ask("tasks/get", taskId=name)


async def _leave(agent: Agent) -> Any:
    await agent.begin()


async def _lose(agent: Agent) -> Any:
    with pytest.raises(MCPError, match="expired"):
        await agent.dig(how="lost")


OUTCOMES = [
    (lambda agent: agent.dig(how="error"), "nothing at Kraków"),
    (lambda agent: agent.dig(how="refused"), "the ground is holy"),
    (_cancel, "the task was cancelled: looked 0 times"),
    (_leave, "the agent did not fetch the result of the task that this call began"),
    (_lose, "the task has expired"),
]


@pytest.mark.parametrize(("use", "error"), OUTCOMES)
def test_task_without_a_result_is_recorded_as_what_became_of_it(
    digging: Callable[..., Any], use: Use, error: str
) -> None:
    _, log = digging(use)

    assert [(error, None, 1)] == [(call.error, call.result, call.executions) for call in log.calls]


@pytest.mark.parametrize(("able", "depth", "by"), [(True, "mine", "agent"), (False, "deep", "policy")])
def test_task_gets_what_it_needs(digging: Callable[..., Any], revision: str, able: bool, depth: str, by: str) -> None:
    async def use(agent: Agent) -> Any:
        begun = await agent.begin(how="form")
        name = (begun if agent.modern else begun["task"])["taskId"]
        state = await agent.ask("tasks/get", taskId=name)
        assert ("working" if agent.modern and not able else "input_required") == state["status"]
        if agent.modern and able:
            assert ["form"] == [*state["inputRequests"]]
            given = {"form": {"action": "accept", "content": {"depth": depth}}}
            await agent.ask("tasks/update", taskId=name, inputResponses=given)
        if agent.modern:
            return (await agent.watch(name))["result"]
        return await agent.ask("tasks/result", taskId=name)

    result, log = digging(use, able=able)

    asked = [each for each in log.exchanges if each.method == "elicitation/create"]
    assert (depth, [by]) == (result["structuredContent"]["depth"], [each.answered_by for each in asked])
    assert [text(result)] == [call.result for call in log.calls]


@pytest.mark.parametrize("revision", [OLD])
def test_progress_goes_on_when_the_call_was_answered(digging: Callable[..., Any], revision: str) -> None:
    async def use(agent: Agent) -> Any:
        await agent.dig()
        return [(each.method, each.params.progress_token, each.params.progress) for each in agent.told]

    told, log = digging(use, "http")

    assert [("notifications/progress", "mine", number) for number in (1.0, 2.0)] == told
    seen = [each.params["progress"] for each in log.exchanges if each.method == "notifications/progress"]
    assert [1, 2] == seen


@attrs.define
class Hearing:
    """An agent's session that keeps what it is told."""

    told: list[str] = attrs.field(factory=list)
    capabilities: Mapping[str, Any] = attrs.field(factory=dict)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append(f"{method} {params['taskId']} {params['status']}")


def test_state_of_a_task_is_told_to_the_agent_that_made_it(server: Callable[..., Stdio], sample: Sample) -> None:
    async def run() -> Any:
        async with (
            started(server("tasked", OLD), "dig") as source,
            source.open(sample, "t1") as one,
            source.open(sample, "t2") as other,
        ):
            passages = [each.servers[0].channel.passage for each in (one, other)]  # type: ignore[union-attr]
            agents = [Hearing(), Hearing()]
            for passage, agent in zip(passages, agents, strict=True):
                passage.agents.append(agent)
                call = {"name": "dig", "arguments": {"where": "Łódź"}, "task": {}}
                assert "task" in await passage.forward(call)
                assert passage.busy
            await passages[0].request("tasks/result", {"taskId": "t1"})
            listed = await passages[0].request("tasks/list", {})
            return [each.told for each in agents], passages[0].busy, [each["status"] for each in listed["tasks"]]

    told = ["notifications/tasks/status t1 completed"]
    assert ([told, []], False, ["completed", "working"]) == asyncio.run(asyncio.wait_for(run(), 30))


@attrs.define(eq=False)
class CountingTimeout(ProgressTimeout):
    extended: int = 0

    def extend(self) -> None:
        self.extended += 1


def test_progress_extends_the_time_of_who_waits_for_the_result(server: Callable[..., Stdio], sample: Sample) -> None:
    async def run() -> Any:
        async with started(server("tasked", OLD), "dig") as source, source.open(sample, "t") as context:
            passage = context.servers[0].channel.passage  # type: ignore[union-attr]
            timeouts = [CountingTimeout(60), CountingTimeout(60)]
            passage.progress_timeout = iter(timeouts).__next__
            await passage.forward({"name": "dig", "arguments": {"where": "Łódź"}, "task": {}}, lambda progress: None)
            await passage.request("tasks/result", {"taskId": "t1"})
            return [each.extended for each in timeouts]

    assert [0, 1] == asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize("revision", [OLD])
def test_result_that_does_not_come_in_time_is_a_timeout(digging: Callable[..., Any], revision: str) -> None:
    async def use(agent: Agent) -> Any:
        await agent.begin(how="never")
        with pytest.raises(MCPError, match="did not answer tasks/result"):
            await agent.ask("tasks/result", taskId="t1")

    _, log = digging(use, timeout=0.5)

    (call,) = log.calls
    assert ("server 'dig' did not answer tasks/result within 0.5 s", "tool_timeout") == (call.error, call.error_kind)


def recorded_by(
    digging: Callable[..., tuple[Any, CallLog]], use: Use, as_kept: Callable[[Any], Any] = lambda traffic: traffic
) -> tuple[Any, CallLog, Any, Callable[[], object]]:
    """Record an attempt; return what was said and recorded, a cassette that plays it, and what says what that lacks."""
    before, log = TrafficLog(), TrafficLog()
    live, recorded = digging(use, before=before.server("dig"), traffic_log=log.server("dig"))
    (listed,) = before.traffic()
    assert isinstance(listed, ServerTraffic)
    unused: Any = None
    kept = RecordedAttempt(as_kept(log.traffic()))
    attempt = AttemptCassette(kept, unused, lambda data: data, unused, lambda server: listed.result or {})
    return live, recorded, attempt.server("dig"), lambda: attempt.missed


@pytest.mark.parametrize("polls", [(1, 1), (3, 1), (2, 4)])
def test_replay_is_indifferent_to_how_often_the_agent_looks(
    digging: Callable[..., Any], revision: str, polls: tuple[int, int]
) -> None:
    async def look(agent: Agent, times: int, order: int) -> Any:
        names = []
        for where in ("Kraków", "Łódź"):
            begun = await agent.begin(where)
            names.append((begun if agent.modern else begun["task"])["taskId"])
        for name in names * times:
            await agent.ask("tasks/get", taskId=name)
        results = {}
        for name in names[::order]:
            last = (await agent.watch(name)) if agent.modern else await agent.ask("tasks/result", taskId=name)
            results[name] = last.get("result", last)
        return results

    live, recorded, cassette, missed = recorded_by(digging, lambda agent: look(agent, polls[0], 1))
    played, again = digging(lambda agent: look(agent, polls[1], -1), cassette=cassette)

    assert live == played
    was, now = (Transcript(tool_calls=tuple(log.calls), exchanges=tuple(log.exchanges)) for log in (recorded, again))
    assert canonical(was) == canonical(now)
    assert missed() is None


def canonical(transcript: Transcript) -> Any:
    """Return what `compare --exact` reads of a transcript, but for the order of what passed, which agents choose."""
    plain = canonical_trial(Trial("t", Sample("one", "What?"), "a", "c", 1, transcript))["transcript"]
    return {**plain, "exchanges": sorted(map(str, plain["exchanges"]))}


def test_recorded_results_are_those_of_the_tasks(digging: Callable[..., Any], revision: str) -> None:
    change = Intervention(results=RecordedResults(Path("run")))
    (_, live), _, cassette, _ = recorded_by(digging, Agent.dig, as_kept=settled)

    async def use(agent: Agent) -> Any:  # of a server that is played, a task is asked for as of one that is live
        return [None, await agent.begin()] if agent.modern else await agent.dig()

    (status, played), log = digging(use, cassette=cassette, made=(change,))

    assert (text(live), None if revision == NEW else "completed") == (text(played), status)
    assert [text(live)] == [call.result for call in log.calls]


def test_task_whose_result_nobody_fetched_answers_no_call(digging: Callable[..., Any]) -> None:
    log = TrafficLog()
    digging(Agent.begin, traffic_log=log.server("dig"))

    kinds = [each.error and each.error.kind for each in settled(log.traffic()) if getattr(each, "kind", "") == "call"]

    assert ["abandoned"] == kinds
