"""A conversation with one agent under one condition, of which each turn is a trial."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence

import attrs

from keval.errors import PluginWarning, TrialError
from keval.execute.attempts import Attempted, attempt
from keval.execute.bringup.resources import ResourceScope
from keval.execute.trial.compliance import held_to
from keval.execute.trial.conversation import OpenConversation, open_conversation
from keval.execute.trial.reconciliation import shorten
from keval.execute.trial.trial_attempt import Try
from keval.execute.trial.worker import PlanWorker
from keval.records.cassettes import Traffic
from keval.records.sample import Sample
from keval.records.traffic import Blob
from keval.records.transcript import Transcript
from keval.records.trial import Failure, Trial, TrialKey
from keval.seams.contexts import TrialInfo
from keval.seams.infrastructure import Outbox
from keval.seams.interfaces import ConversationalAgent
from keval.seams.live import LiveEvent
from keval.seams.transcript_builder import Recorder

STOPPED = "stopped"
"""The kind of the failure of a trial that a person stopped."""


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

    def traffic(self, trial: str, traffic: Sequence[Traffic]) -> None:
        """What people ask is not recorded."""


def is_conversational(worker: PlanWorker, agent: str) -> bool:
    """Return whether an agent, by its label, can hold a conversation."""
    return isinstance(worker.ready.agents[agent], ConversationalAgent)


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
    _recorder: Recorder | None = attrs.field(default=None, init=False)
    _info: TrialInfo | None = attrs.field(default=None, init=False)
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
        if is_conversational(self.worker, self.agent):
            work = self._turns(key, sample, texts)
        else:
            work = self.worker.run(key, sample, self._told)
        self._asking = asyncio.create_task(work)
        try:
            trial = await self._asking
        except asyncio.CancelledError:
            if not self.is_stopped:
                self._asking.cancel()
                raise
            trial = self._trial(key, sample, stopped, self._so_far())
        except Exception as error:  # noqa: BLE001 - a seam: a defect in one column hurts no other
            trial = self._trial(key, sample, error, None)
        finally:
            self._asking = None
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
            warnings.warn(f"while {self.agent} ended: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=1)
        hooks, info = self.worker.ready.hooks, self._info
        if info is None or not hooks.prepare_trials:
            return
        ended = await attempt(lambda: hooks.trial_ended(info, self._failure), seconds=self._seconds, late=self._late)
        if ended.failure is not None:
            warnings.warn(f"after the trial {info.id}: {ended.failure.message}", PluginWarning, stacklevel=2)

    @property
    def _seconds(self) -> float:
        return self.worker.plan.evaluation.execution.timeout_seconds

    @property
    def _late(self) -> TrialError:
        return TrialError(f"it was not ready within {self._seconds:g} s", kind="timeout", retryable=True)

    async def _turns(self, key: TrialKey, sample: Sample, texts: Sequence[str]) -> Trial:
        self._attempt(key, sample).begun()
        error: BaseException | None = None
        if self._open is not None:
            self._open.carry()
        else:
            error = await self._begin(key, sample)
        for text in texts:
            if error is None and self._open is not None:
                error = (await self._open.ask(text)).error
        return self._trial(key, sample, error, self._so_far())

    def _attempt(self, key: TrialKey, sample: Sample) -> Try:
        return Try(key, sample, 1, 0, self._told)

    async def _begin(self, key: TrialKey, sample: Sample) -> BaseException | None:
        """Open the conversation, or return why it cannot be opened."""
        tries = self._attempt(key, sample)
        arm = next(arm for arm in self.worker.plan.arms if arm.label == self.condition)
        try:
            arm.prompt.render(sample)
        except ValueError as error:
            told = f"the prompt of the condition cannot be written: {error}; give what it needs as facts or metadata"
            return TrialError(told, stage="context", kind="bad_prompt")
        hooks, self._info = self.worker.ready.hooks, tries.info
        begun = await attempt(lambda: hooks.trial_started(tries.info), seconds=self._seconds, late=self._late)
        if begun.error is not None:
            return begun.error
        self._recorder = recorder = Recorder(tries.watch.now, emit=tries.emit, keep=self._told.blob)
        opened = await attempt(
            lambda: self._scope.enter(open_conversation(self.worker, tries, recorder, streams=True)),
            seconds=self._seconds,
            late=self._late,
            watch=tries.watch,
        )
        self._open = opened.value
        return opened.error

    def _trial(
        self, key: TrialKey, sample: Sample, error: BaseException | None, transcript: Transcript | None
    ) -> Trial:
        """Return the trial that has ended, with what was said until then."""
        plan = self.worker.plan
        outcome = Attempted(transcript) if error is None else Attempted[Transcript].failed(error)
        arm = next(arm for arm in plan.arms if arm.label == key.condition)
        complied, outcome = held_to(arm.condition, transcript, outcome)
        agent = next(agent for agent in plan.agents if agent.label == key.agent)
        failure = outcome.failure
        self._attempt(key, sample).ended(failure)
        return Trial(
            id=key.id,
            sample=sample,
            agent=key.agent,
            condition=key.condition,
            repetition=key.repetition,
            transcript=transcript,
            failure=failure,
            complied=complied,
            characteristics=agent.characteristics,
            model=agent.model_name,
        )

    def _so_far(self) -> Transcript | None:
        """Return what was said, as a trial keeps it; `None` if nothing was opened."""
        if self._open is None:
            return None if self._recorder is None else self._recorder.transcript()
        execution = self.worker.plan.evaluation.execution
        context = self._open.context
        for server in context.servers:
            for blob in server.log.blobs if server.log else ():
                self._told.blob(blob)
        told = attrs.evolve(self._open.transcript, instructions=context.instructions)
        return shorten(told, execution.largest_recorded, self._told.blob if execution.keep_large_results else None)
