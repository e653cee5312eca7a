"""Sessions: one agent under one condition, asked message by message, outside of a plan."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Evaluation
from keval.config.load import load
from keval.dataset.read import NO_DATASET
from keval.errors import ConfigError
from keval.execute.bringup.preflight import preflight
from keval.execute.bringup.resources import ResourceScope, reach_loopback
from keval.execute.trial.trial_attempt import TrialAttempt
from keval.execute.trial.worker import PlanWorker
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.records.transcript import Blob, Message, Transcript
from keval.records.trial import Sample, Trial, TrialKey
from keval.run.select import Selection, select
from keval.seams.live_events import LiveEvent
from keval.seams.transcript_builder import TranscriptBuilder
from keval_viewer.interactive.conversation import OpenConversation, open_conversation


@attrs.define(eq=False)
class Session:
    """An open conversation with one agent of a config, under one of its conditions.

    Make one with `Session.open`. The agent keeps what was said and what its tools returned, as long as it is open.
    """

    agent: str
    condition: str
    _conversation: OpenConversation
    _listening: _Listening

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: str | Path | Evaluation,
        *,
        agent: str | None = None,
        condition: str | None = None,
        model: str | None = None,
        history: tuple[Message, ...] = (),
        facts: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        streams: bool = False,
    ) -> AsyncIterator[Session]:
        """Bring up an agent and the servers of a condition, and open a conversation.

        By default these are the config's first agent and its last condition. Prompts and servers may use `facts` and
        `metadata`, like those of a sample. `model` is `provider/name`, in place of the config's. If it `streams`, the
        agent has its model stream, so that `follow` yields text as it is written.

        Raises:
            ConfigError: the config is wrong, has no such agent or condition, or its prompt needs what is not given.
            PluginError: the agent cannot hold a conversation.
            PreflightError: a model or a server cannot be reached.
            TrialError: the conversation cannot be opened.
        """
        reach_loopback(os.environ)
        evaluation = config if isinstance(config, Evaluation) else load(Path(config))
        chosen = agent or next((spec.label for spec in evaluation.agents), "")
        arm = condition or next(reversed(list(evaluation.conditions)), "")
        models = (f"agents.{chosen}={model}",) if model else ()
        narrowed = select(evaluation, Selection(agents=(chosen,), conditions=(arm,), models=models))
        plan = _plan_of(narrowed)
        if len(plan.agents) != 1:
            raise ConfigError(f"{chosen!r} names {len(plan.agents)} agents; name one of them by its label")
        label = plan.agents[0].label
        sample = Sample("session", "", history=history, facts=facts or {}, metadata=metadata or {})
        try:
            plan.arms[0].system_prompt(sample)
        except ValueError as error:
            needs = "pass what it needs as facts or metadata"
            raise ConfigError(f"the prompt of the condition {arm!r} cannot be written: {error}; {needs}") from error
        scope = ResourceScope()
        try:
            ready = await preflight(plan, scope)
            worker = PlanWorker(plan, ready)
            key = TrialKey(f"{label}/{arm}/session/1", label, arm, sample.id, 1)
            listening = _Listening()
            attempt = TrialAttempt(key, sample, 1, 0, listening)
            builder = TranscriptBuilder(attempt.stopwatch.now, attempt.emit)
            async with open_conversation(worker, attempt, builder, streams=streams) as conversation:
                yield cls(label, arm, conversation, listening)
        finally:
            await scope.close()

    async def ask(self, text: str) -> str:
        """Send one message of the user and return the agent's answer.

        Raises:
            TrialError: there is no answer in time, a server was lost, or the agent was offered other tools than the
                condition's.
        """
        answered = await self._conversation.ask(text)
        if answered.error is not None:
            raise answered.error
        return answered.value or ""

    async def follow(self, text: str) -> AsyncGenerator[LiveEvent, None]:
        """Send one message of the user and yield what happens, as it happens, until the agent has answered.

        Whoever leaves early closes the generator (`contextlib.aclosing`), and with it gives the answer up; what the
        agent remembers of it is not defined. Raises what `ask` raises, after the last event, and RuntimeError while
        another answer is followed.
        """
        if self._listening.news is not None:
            raise RuntimeError("one answer is followed at a time; read its events to the end first")
        news = self._listening.news = asyncio.Queue[LiveEvent | None]()
        asking = asyncio.create_task(self.ask(text))
        asking.add_done_callback(lambda _: news.put_nowait(None))
        try:
            while (event := await news.get()) is not None:
                yield event
            await asking
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            self._listening.news = None

    @property
    def transcript(self) -> Transcript:
        """What has happened so far, with tool calls as the tap saw them."""
        return self._conversation.transcript


@attrs.define(eq=False)
class _Listening:
    """An outbox that keeps nothing, and hands on the events of an answer while somebody follows it."""

    news: asyncio.Queue[LiveEvent | None] | None = None

    @property
    def wants_events(self) -> bool:
        return self.news is not None

    async def trial(self, trial: Trial) -> None:
        """Nothing is written."""

    def event(self, event: LiveEvent) -> None:
        """Hand an event to whoever follows."""
        if self.news is not None:
            self.news.put_nowait(event)

    def blob(self, blob: Blob) -> None:
        """Nothing is kept."""

    def traffic(self, trial: str, frame: bytes) -> None:
        """Nothing is recorded."""


def _plan_of(evaluation: Evaluation) -> Plan:
    """Construct what a session needs: agents, contexts, middleware, prompts.

    Raises ConfigError with every problem. A missing dataset and missing scorers are not problems.
    """
    asked = evaluation.needing_no("dataset")
    needed = attrs.evolve(asked, dataset=None, metrics=(), judges=(), rubrics=(), plugins=(), sections=())
    return attrs.evolve(make_plan(needed, NO_DATASET, scored=False), evaluation=evaluation, notices=())
