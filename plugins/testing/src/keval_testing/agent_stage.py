"""Where an agent that is checked plays its trials: before a scripted model, with an MCP server behind the tap."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from keval import Sample, Transcript
from keval.execute.models.exchange import ModelExchange
from keval.execute.models.gate import RequestScope
from keval.execute.trial.reconciliation import check, merge
from keval.plan.plan import models_of
from keval.records.models import Asker, Model
from keval.seams import registry
from keval.seams.contexts import Context, ServerSpec
from keval.seams.infrastructure import ConnectedServer, ModelProxy, ServerProxy
from keval.seams.interfaces import Agent, Closable, Preparable, has_flag
from keval.seams.live_events import EmitEvent
from keval.seams.transcript_builder import TranscriptBuilder
from keval_replay.played_gate import PlayedGate
from keval_testing.scripted_endpoint import ReceivedRequest
from keval_testing.scripted_model import Reply, Script, ScriptedModel

QUESTION = Sample("s1", "What is 2 + 3?")
INSTRUCTIONS = "Answer like a bookkeeper."
SUMS = ServerSpec(
    "sums",
    "stdio",
    command=sys.executable,
    args=("-IS", str(Path(__file__).with_name("sums_server.py"))),
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
        scope = RequestScope(
            refused=builder.refused,
            relayed=builder.relayed,
            metered=builder.metered,
            failed=builder.model_failed,
            denied=builder.denied,
            passed=builder.passed,
            headers=lambda: HEADERS,
        )
        async with self._exchange.request_scope(_ASKER, scope) as headers, self._server.open(SUMS) as server:
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
        proxy: ServerProxy = registry.load(registry.find("keval.proxies", "servers"))()
        async with ScriptedModel.serve() as models, proxy.connect(SUMS) as server:
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
                agent = make(attrs.evolve(script.model, endpoint=proxied))
            if isinstance(agent, Closable):
                stack.push_async_callback(agent.aclose)
            if isinstance(agent, Preparable):
                await agent.prepare()
            yield StagedAgent(agent, script, exchange, self._server)

    async def play(self, make: MakeAgent, *replies: Reply, sample: Sample = QUESTION, **rest: Any) -> Outcome:
        """Bring an agent up for one trial with these replies, and run it."""
        async with self.agent(make, replies) as staged:
            return await staged.play(sample, **rest)
