"""Where an agent that is checked plays its trials: before a scripted model, with an MCP server behind the tap."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

import attrs

from keval import Sample, Transcript
from keval.execute.bringup.servers import server_proxy
from keval.execute.models.exchange import ModelExchange
from keval.execute.models.gate import RequestScope
from keval.execute.trial.reconciliation import check, merge
from keval.plan.plan import models_of
from keval.plugin import Model, TranscriptBuilder, TrialError
from keval.records.models import Asker
from keval.seams import registry
from keval.seams.contexts import Context, ServerSpec, ServerUse
from keval.seams.infrastructure import ConnectedServer, ModelProxy
from keval.seams.interfaces import Agent, Closable, Preparable, has_flag
from keval.seams.live_events import EmitEvent
from keval_replay.replay import PlayedGate
from keval_testing import stubs
from keval_testing.scripted_model import ReceivedRequest, Reply, Script, ScriptedModel, calls_tools, says

QUESTION = Sample("s1", "What is 2 + 3?")
INSTRUCTIONS = "Answer like a bookkeeper."
SUMS = ServerSpec(
    "sums",
    "stdio",
    command=sys.executable,
    args=("-IS", stubs.__file__, "sums"),
    # It keeps nothing between calls, so one process serves all trials.
    isolation="condition",
)
TOOLS = ("add", "divide")
"""The tools of that server."""
HEADERS = {"x-keval-trial": "t1"}
"""What marks the model requests of a trial."""

MakeAgent: TypeAlias = Callable[[Model], Agent]


@attrs.frozen
class Outcome:
    """What came of a trial, as the core sees it, what the model was asked, and the live events."""

    transcript: Transcript
    error: Exception | None
    requests: list[ReceivedRequest]
    events: list[tuple[str, Mapping[str, Any]]]


@attrs.frozen
class RunningTrial:
    """A trial that has begun."""

    context: Context
    task: asyncio.Task[Transcript]
    events: list[tuple[str, Mapping[str, Any]]]

    @property
    def transcript(self) -> Transcript:
        """What is known of the trial so far, as the core sees it."""
        return merge(self.context.builder.transcript(), self.context)


@attrs.frozen(eq=False)
class StagedAgent:
    """An agent that is up, and the script of its model."""

    agent: Agent
    script: Script
    _exchange: ModelExchange
    _server: ConnectedServer

    @asynccontextmanager
    async def trial(
        self,
        sample: Sample = QUESTION,
        *,
        instructions: str = INSTRUCTIONS,
        streams: bool = False,
        emit: EmitEvent | None = None,
    ) -> AsyncIterator[RunningTrial]:
        """Begin a trial, as a task; `emit` is called with its live events, too."""
        events: list[tuple[str, Mapping[str, Any]]] = []

        def note(kind: Any, data: Mapping[str, Any]) -> None:
            events.append((kind, data))
            if emit is not None:
                emit(kind, data)

        builder = TranscriptBuilder(emit=note)
        scope = RequestScope(requests=builder.requests, headers=lambda: HEADERS)
        async with self._exchange.request_scope(_ASKER, scope) as headers, self._server.open(ServerUse(SUMS)) as server:
            context = Context(
                "t1",
                instructions,
                (server,),
                {**headers, **HEADERS},
                history=sample.history,
                streams=streams,
                builder=builder,
            )
            yield RunningTrial(context, asyncio.create_task(self.agent.run(sample, context)), events)

    async def play(self, sample: Sample = QUESTION, **rest: Any) -> Outcome:
        """Run a trial to its end; `rest` is that of `trial`."""
        async with self.trial(sample, **rest) as running:
            error: Exception | None = None
            try:
                transcript = merge(await running.task, running.context)
                check(transcript, running.context)
            except Exception as raised:  # noqa: BLE001 - the rules look at it
                transcript, error = running.transcript, raised
            return Outcome(transcript, error, self.script.requests, running.events)


_ASKER = Asker("agent", "a")


@attrs.frozen(eq=False)
class AgentStage:
    """A scripted model and a server that are up, for as many agents as are checked."""

    models: ScriptedModel
    _server: ConnectedServer

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[AgentStage]:
        """Bring both up. Raises PluginError: a package that does so is not installed; the message names it."""
        proxy = server_proxy()
        async with ScriptedModel.serve() as models, proxy.connect(ServerUse(SUMS)) as server:
            yield cls(models, server)

    @asynccontextmanager
    async def agent(self, make: MakeAgent, replies: Iterable[Reply]) -> AsyncIterator[StagedAgent]:
        """Bring an agent up as a run does, whose model gives these replies: behind keval's proxy, if it needs that."""
        script, exchange = self.models.script(replies), ModelExchange(make_gate=PlayedGate)  # which repeats no request
        agent = make(script.model)
        # An adapter's test may have given the model another name, for a program that knows its own only.
        endpoint = next((model.endpoint for model in models_of(agent).values()), None)
        async with AsyncExitStack() as stack:
            if has_flag(agent, "requests_by_proxy") and endpoint is not None:
                proxy: ModelProxy = registry.load(registry.find("keval.proxies", "models"))()
                route = exchange.route(_ASKER, endpoint, metered=True, sole=has_flag(agent, "usage_by_proxy"))
                (proxied,) = await stack.enter_async_context(proxy.open([route]))
                # Made anew, as an agent's options are frozen and the address of the proxy is known only now.
                agent = make(attrs.evolve(script.model, endpoint=proxied))
            if isinstance(agent, Closable):
                # Before `prepare`, so that what it began is closed if it fails.
                stack.push_async_callback(agent.aclose)
            if isinstance(agent, Preparable):
                await agent.prepare()
            yield StagedAgent(agent, script, exchange, self._server)

    async def play(self, make: MakeAgent, *replies: Reply, sample: Sample = QUESTION, **rest: Any) -> Outcome:
        """Bring an agent up for one trial with these replies, and run it."""
        async with self.agent(make, replies) as staged:
            return await staged.play(sample, **rest)


ADD, FIVE = calls_tools(("add", {"a": 2, "b": 3})), says("It is 5.")
"""The replies of a model that answers the question by a tool call."""


class BreaksOffError(Exception):
    """A rule is broken so that the rest of it cannot be checked."""


@attrs.define(eq=False)
class Trials:
    """Trials of the agent that is checked, and what was found to break the rule.

    `sought` are the addresses beyond loopback that it wanted to reach.
    """

    stage: AgentStage
    make: MakeAgent
    found: list[str] = attrs.field(factory=list, init=False)
    sought: list[str] = attrs.field(factory=list, init=False)

    def same(self, what: str, expected: object, actual: object) -> None:
        """Note it if something is not as expected."""
        if expected != actual:
            self.found.append(f"{what}: expected {expected!r}, got {actual!r}")

    async def play(self, *replies: Reply, sample: Sample = QUESTION, **rest: Any) -> Outcome:
        """Run one trial with these replies of the model."""
        return await self.stage.play(self.make, *replies, sample=sample, **rest)

    async def answered(self, *replies: Reply, **rest: Any) -> Outcome:
        """Run one trial, which must end with an answer."""
        outcome = await self.play(*replies, **rest)
        if outcome.error is not None:
            raise BreaksOffError(f"the trial fails: {error_text(outcome.error)}") from outcome.error
        return outcome

    async def failed(self, *replies: Reply, **rest: Any) -> tuple[TrialError, Outcome]:
        """Run one trial, which must fail with a TrialError."""
        outcome = await self.play(*replies, **rest)
        if not isinstance(outcome.error, TrialError):
            answer = f"it answers {outcome.transcript.output!r}"
            ended = answer if outcome.error is None else error_text(outcome.error)
            raise BreaksOffError(f"the trial does not fail with a TrialError: {ended}") from outcome.error
        return outcome.error, outcome


Rule: TypeAlias = Callable[[Trials], Awaitable[None]]


def error_text(error: Exception) -> str:
    """Return the type and message of an error."""
    return f"{type(error).__name__}: {error}"


def in_order(texts: Iterable[str], wanted: Sequence[str]) -> bool:
    """Return whether each of `wanted` stands in a text of its own, in this order."""
    left = iter(texts)
    return all(any(want in text for text in left) for want in wanted)


def messages_of(transcript: Transcript) -> list[tuple[str, str, int]]:
    """Return role, text and turn of each message."""
    return [(message.role, message.text, message.turn) for message in transcript.messages]
