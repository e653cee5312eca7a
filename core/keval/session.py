"""Sessions: one agent under one condition, asked message by message, outside of a plan."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Evaluation
from keval.config.load import load
from keval.config.select import Selection, select
from keval.errors import ConfigError
from keval.execute.conversation import OpenConversation, open_conversation
from keval.execute.preflight import preflight
from keval.execute.resources import ResourceScope
from keval.execute.tries import Try
from keval.execute.worker import PlanWorker
from keval.live import LiveEvent
from keval.plan.build import make_session_plan
from keval.recorder import Blob, Recorder
from keval.records import Message, Sample, Transcript, Trial, TrialKey
from keval.tapes import Traffic

__all__ = ["Session"]


@attrs.define(eq=False)
class Session:
    """An open conversation with one agent of a config, under one of its conditions.

    Make one with `Session.open`. The agent keeps what was said and what its tools returned, as long as it is open.
    """

    agent: str
    condition: str
    _conversation: OpenConversation

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
    ) -> AsyncIterator[Session]:
        """Bring up an agent and the servers of a condition, and open a conversation.

        By default these are the config's first agent and its last condition. Prompts and servers may use `facts` and
        `metadata`, like those of a sample. `model` is `provider/name`, in place of the config's.

        Raises:
            ConfigError: the config is wrong, has no such agent or condition, or its prompt needs what is not given.
            PluginError: the agent cannot hold a conversation.
            PreflightError: a model or a server cannot be reached.
            TrialError: the conversation cannot be opened.
        """
        evaluation = config if isinstance(config, Evaluation) else load(Path(config))
        chosen = agent or next((spec.label for spec in evaluation.agents), "")
        arm = condition or next(reversed(list(evaluation.conditions)), "")
        models = (f"agents.{chosen}={model}",) if model else ()
        narrowed = select(evaluation, Selection(agents=(chosen,), conditions=(arm,), models=models))
        plan = make_session_plan(narrowed)
        if len(plan.agents) != 1:
            raise ConfigError(f"{chosen!r} names {len(plan.agents)} agents; name one of them by its label")
        label = plan.agents[0].label
        sample = Sample("session", "", history=history, facts=facts or {}, metadata=metadata or {})
        try:
            plan.arms[0].prompt.render(sample)
        except ValueError as error:
            needs = "pass what it needs as facts or metadata"
            raise ConfigError(f"the prompt of the condition {arm!r} cannot be written: {error}; {needs}") from error
        scope = ResourceScope()
        try:
            ready = await preflight(plan, scope)
            worker = PlanWorker(plan, ready)
            key = TrialKey(f"{label}/{arm}/session/1", label, arm, sample.id, 1)
            tries = Try(key, sample, 1, 0, _Discard())
            async with open_conversation(worker, tries, Recorder(tries.watch.now)) as conversation:
                yield cls(label, arm, conversation)
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

    @property
    def transcript(self) -> Transcript:
        """What has happened so far, with tool calls as the tap saw them."""
        return self._conversation.transcript


class _Discard:
    """An outbox that keeps nothing."""

    wants_events = False

    async def trial(self, trial: Trial) -> None:
        """Nothing is written."""

    def event(self, event: LiveEvent) -> None:
        """Nobody listens."""

    def blob(self, blob: Blob) -> None:
        """Nothing is kept."""

    def traffic(self, trial: str, traffic: Sequence[Traffic]) -> None:
        """Nothing is recorded."""
