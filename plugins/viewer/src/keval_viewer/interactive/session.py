"""Conversations with one agent under one condition, asked message by message: outside of a plan, or in a run.

A session is asked by hand. In a run, each turn of a conversation is a trial.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from keval.config.evaluation import Evaluation
from keval.config.load import load
from keval.dataset.read import NO_DATASET
from keval.errors import ConfigError, FailureKind, PluginError, PluginWarning, TrialError
from keval.execute.attempts import AttemptOutcome, Stopwatch, run_attempt
from keval.execute.bringup.preflight import preflight
from keval.execute.bringup.resources import ResourceScope, reach_loopback
from keval.execute.trial.reconciliation import check, check_text, held_to, merge
from keval.execute.trial.trial_attempt import TrialAttempt
from keval.execute.trial.worker import PlanWorker
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.records.transcript import Blob, Message, Transcript
from keval.records.trial import Failure, Sample, Trial, TrialKey
from keval.run.select import Selection, select
from keval.seams.contexts import Context, TrialInfo
from keval.seams.distribution import Outbox
from keval.seams.interfaces import Conversation, ConversationalAgent
from keval.seams.live_events import LiveEvent
from keval.seams.transcript_builder import TranscriptBuilder
from keval.seams.use_meter import UseMeter

T = TypeVar("T")


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
            # Before anything is brought up, which takes time.
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
        # Without a bound, as events come from code that cannot wait.
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


STOPPED: FailureKind = "stopped"
"""The kind of the failure of a trial that a person stopped."""


@attrs.define(eq=False)
class OpenConversation:
    """A conversation with an agent that stays open. Its time stands still while the agent is not asked."""

    context: Context
    _conversation: Conversation
    _stopwatch: Stopwatch
    _seconds: float
    _tools: Mapping[str, Mapping[str, Any] | None]
    _pause: ExitStack
    _exchanges: int = attrs.field(default=0, init=False)

    async def ask(self, text: str) -> AttemptOutcome[str]:
        """Send one message of the user, and return the answer, or why there is none."""
        late = TrialError(f"no answer within {self._seconds:g} s", kind="timeout", retryable=True)
        self._pause.close()
        try:
            asked = await run_attempt(
                lambda: self._conversation.ask(text), seconds=self._seconds, late=late, stopwatch=self._stopwatch
            )
        finally:
            self._pause.enter_context(self._stopwatch.paused())
        if asked.error is not None:
            return AttemptOutcome.failed(asked.error)
        transcript = self.transcript
        try:
            check(transcript, self.context)
            check_text(transcript, self._tools)
        except TrialError as error:
            return AttemptOutcome.failed(error)
        return AttemptOutcome(transcript.output)

    @property
    def transcript(self) -> Transcript:
        """What has happened so far, with tool calls as the tap saw them."""
        told = merge(self.context.builder.transcript(), self.context)
        return attrs.evolve(told, exchanges=told.exchanges[self._exchanges :])

    def carry(self) -> None:
        """Begin another trial: what has happened so far was told by the ones before; see `Transcript.carried`."""
        self._exchanges += len(self.transcript.exchanges)
        self.context.builder.carry()


@asynccontextmanager
async def open_conversation(
    worker: PlanWorker, attempt: TrialAttempt, builder: TranscriptBuilder, *, streams: bool = False
) -> AsyncIterator[OpenConversation]:
    """Open the contexts of an attempt and a conversation with its agent, which `streams` if somebody reads along.

    The builder's clock is that of `attempt.stopwatch`. `worker.ready` has the agent, which is a `ConversationalAgent`.

    Raises:
        PluginError: the agent cannot hold a conversation.
        TrialError: the conversation cannot be opened.
    """
    plugin = worker.ready.agents[attempt.key.agent]
    if not isinstance(plugin, ConversationalAgent):
        told = f"the agent {attempt.key.agent!r} cannot hold a conversation: its plugin has no method open()"
        raise PluginError(told)
    seconds = worker.plan.evaluation.execution.timeout_seconds
    opened = worker.context(attrs.evolve(attempt, streams=streams), builder)
    async with opened as context, plugin.open(context) as conversation:
        with ExitStack() as pause:
            pause.enter_context(attempt.stopwatch.paused())
            tools = worker.offered_tools(attempt.key.condition)
            yield OpenConversation(context, conversation, attempt.stopwatch, seconds, tools, pause)


@attrs.define(eq=False)
class _TurnOutbox:
    """Hands on what a conversation reports, as of the trial that is under way; trials are written elsewhere."""

    run: Outbox
    trial_id: str = ""

    @property
    def wants_events(self) -> bool:
        return self.run.wants_events

    def event(self, event: LiveEvent) -> None:
        self.run.event(attrs.evolve(event, trial=self.trial_id))

    def blob(self, blob: Blob) -> None:
        self.run.blob(blob)

    async def trial(self, trial: Trial) -> None:
        """A trial is written with its sample, by whoever asked."""

    def traffic(self, trial: str, frame: bytes) -> None:
        """What people ask is not recorded."""


@attrs.define(eq=False)
class TrialConversation:
    """What one agent under one condition is asked in one conversation; `InteractiveRun.converse` opens one.

    After a turn that failed nobody knows what the agent remembers, so ask it no more. While it
    `is_stopped`, every turn fails. An agent that cannot hold a conversation is asked the whole of it each time, as in a
    run, with all its attempts.
    """

    agent: str
    condition: str
    worker: PlanWorker = attrs.field(repr=False)
    outbox: Outbox = attrs.field(repr=False)
    is_stopped: bool = attrs.field(default=False, init=False)
    _told: _TurnOutbox = attrs.field(init=False)
    _open: OpenConversation | None = attrs.field(default=None, init=False)
    _builder: TranscriptBuilder | None = attrs.field(default=None, init=False)
    _info: TrialInfo | None = attrs.field(default=None, init=False)
    _meter: UseMeter | None = attrs.field(default=None, init=False)
    _failure: Failure | None = attrs.field(default=None, init=False)
    _asking: asyncio.Task[Trial] | None = attrs.field(default=None, init=False)
    _scope: ResourceScope = attrs.field(factory=ResourceScope, init=False)

    def __attrs_post_init__(self) -> None:
        self._told = _TurnOutbox(self.outbox)

    async def ask(self, key: TrialKey, sample: Sample, texts: Sequence[str]) -> Trial:
        """Ask the last `texts` of a sample; those before them were asked already. What goes wrong is a failed trial."""
        self._told.trial_id = key.id
        stopped = TrialError("it was stopped", kind=STOPPED)
        if self.is_stopped:
            return self._trial(key, sample, stopped, None)
        exchange = self.worker.ready.exchange
        exchange.try_again("agent", [self.agent])  # whoever asks again may have mended why the endpoint was given up
        if isinstance(self.worker.ready.agents[self.agent], ConversationalAgent):
            work = self._turns(key, sample, texts)
        else:
            work = self.worker.run(key, sample, self._told)
        self._asking = asyncio.create_task(work)
        try:
            trial = await self._asking
        except asyncio.CancelledError:
            # Whoever asked was cancelled, and not the answer alone, which must not go on by itself.
            if not self.is_stopped:
                self._asking.cancel()
                raise
            trial = self._trial(key, sample, stopped, self._so_far())
        except Exception as error:  # noqa: BLE001 - a seam: a defect in one column hurts no other
            trial = self._trial(key, sample, error, None)
        finally:
            self._asking = None
        # Why the endpoint was given up says more than the failure that came of it.
        if trial.failure is not None and (outage := exchange.outage("agent", self.agent)):
            given_up = TrialError(str(outage), stage="model", kind="outage")
            trial = self._trial(key, sample, given_up, trial.transcript)
        self._failure = trial.failure
        return trial

    def stop(self) -> None:
        """Stop the turn that is under way, or about to begin."""
        self.is_stopped = True
        if self._asking is not None:
            self._asking.cancel()

    async def close(self) -> None:
        """End the conversation, with its servers."""
        for error in await self._scope.close():
            warnings.warn(f"while {self.agent} ended: {type(error).__name__}: {error}", PluginWarning, stacklevel=1)
        hooks, info = self.worker.ready.hooks, self._info
        # Hooks are told of an end only where they were told of the beginning.
        if info is None or not hooks.prepare_trials:
            return
        ended = await self._in_time(lambda: hooks.trial_ended(info, self._failure))
        if ended.failure is not None:
            warnings.warn(f"after the trial {info.id}: {ended.failure.message}", PluginWarning, stacklevel=2)

    async def _in_time(self, work: Callable[[], Awaitable[T]], stopwatch: Stopwatch | None = None) -> AttemptOutcome[T]:
        seconds = self.worker.plan.evaluation.execution.timeout_seconds
        late = TrialError(f"it was not ready within {seconds:g} s", kind="timeout", retryable=True)
        return await run_attempt(work, seconds=seconds, late=late, stopwatch=stopwatch)

    async def _turns(self, key: TrialKey, sample: Sample, texts: Sequence[str]) -> Trial:
        self._attempt(key, sample).begun()
        error: BaseException | None = None
        if self._open is not None:
            self._open.carry()
            if self._meter is not None:
                # Each turn is a trial, with limits of its own.
                self._meter.renew()
        else:
            error = await self._begin(key, sample)
        for text in texts:
            if error is None and self._open is not None:
                error = (await self._open.ask(text)).error
        if self._meter is not None and self._meter.reached is not None:
            error = self._meter.reached  # whatever else came of it
        return self._trial(key, sample, error, self._so_far())

    def _attempt(self, key: TrialKey, sample: Sample) -> TrialAttempt:
        return TrialAttempt(key, sample, 1, 0, self._told)

    async def _begin(self, key: TrialKey, sample: Sample) -> BaseException | None:
        """Open the conversation, or return why it cannot be opened."""
        attempt = attrs.evolve(self._attempt(key, sample), meter=self.worker.meter(self.agent))
        self._meter = attempt.meter
        if self._meter is not None:
            self._meter.begin(attempt.stopwatch.expire)
        arm = next(arm for arm in self.worker.plan.arms if arm.label == self.condition)
        try:
            arm.system_prompt(sample)
        except ValueError as error:
            remedy = "add the missing facts or metadata to the question"
            told = f"the condition's prompt cannot be rendered: {error}; {remedy}"
            return TrialError(told, stage="context", kind="bad_prompt")
        hooks, self._info = self.worker.ready.hooks, attempt.info
        begun = await self._in_time(lambda: hooks.trial_started(attempt.info))
        if begun.error is not None:
            return begun.error
        self._builder = builder = TranscriptBuilder(
            attempt.stopwatch.now,
            emit=attempt.emit,
            keep=self._told.blob,
            keep_request=self._told.blob,
            meter=self._meter,
        )
        opening = open_conversation(self.worker, attempt, builder, streams=True)
        opened = await self._in_time(lambda: self._scope.enter(opening), attempt.stopwatch)
        self._open = opened.value
        return opened.error

    def _trial(
        self, key: TrialKey, sample: Sample, error: BaseException | None, transcript: Transcript | None
    ) -> Trial:
        """Return the trial that has ended, with what was said until then."""
        outcome = AttemptOutcome(transcript) if error is None else AttemptOutcome[Transcript].failed(error)
        condition = self.worker.plan.evaluation.conditions[key.condition]
        complied, outcome = held_to(condition, transcript, outcome)
        self._attempt(key, sample).ended(outcome.failure)
        return self.worker.trial(key, sample, transcript, outcome.failure, complied=complied)

    def _so_far(self) -> Transcript | None:
        """Return what was said, as a trial keeps it; `None` if nothing was opened."""
        if self._open is None:
            return None if self._builder is None else self._builder.transcript()
        context = self._open.context
        told = attrs.evolve(self._open.transcript, instructions=context.instructions)
        return self.worker.kept(told, context, self._told)
