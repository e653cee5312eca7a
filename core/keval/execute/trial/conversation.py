"""An open conversation with an agent, in the contexts of a condition, asked message by message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import attrs

from keval.errors import PluginError, TrialError
from keval.execute.attempts import Attempted, Stopwatch, attempt
from keval.execute.trial.reconciliation import check, merge
from keval.execute.trial.trial_attempt import Try
from keval.execute.trial.worker import PlanWorker
from keval.records.transcript import Transcript
from keval.seams.contexts import Context
from keval.seams.interfaces import Conversation, ConversationalAgent
from keval.seams.transcript_builder import Recorder


@attrs.define(eq=False)
class OpenConversation:
    """A conversation with an agent that stays open. Its time stands still while the agent is not asked."""

    context: Context
    _conversation: Conversation
    _watch: Stopwatch
    _seconds: float
    _pause: ExitStack
    _exchanges: int = attrs.field(default=0, init=False)

    async def ask(self, text: str) -> Attempted[str]:
        """Send one message of the user, and return the answer, or why there is none."""
        late = TrialError(f"no answer within {self._seconds:g} s", kind="timeout", retryable=True)
        with self._running():
            asked = await attempt(
                lambda: self._conversation.ask(text), seconds=self._seconds, late=late, watch=self._watch
            )
        if asked.error is not None:
            return Attempted.failed(asked.error)
        transcript = self.transcript
        try:
            check(transcript, self.context)
        except TrialError as error:
            return Attempted.failed(error)
        return Attempted(transcript.output)

    @property
    def transcript(self) -> Transcript:
        """What has happened so far, with tool calls as the tap saw them."""
        told = merge(self.context.recorder.transcript(), self.context)
        return attrs.evolve(told, exchanges=told.exchanges[self._exchanges :])

    def carry(self) -> None:
        """Begin another trial: what has happened so far was told by the ones before; see `Transcript.carried`."""
        self._exchanges += len(self.transcript.exchanges)
        self.context.recorder.carry()

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._pause.close()
        try:
            yield
        finally:
            self._pause.enter_context(self._watch.paused())


@asynccontextmanager
async def open_conversation(
    worker: PlanWorker, tries: Try, recorder: Recorder, *, streams: bool = False
) -> AsyncIterator[OpenConversation]:
    """Open the contexts of an attempt and a conversation with its agent, which `streams` if somebody reads along.

    The recorder's clock is that of `tries.watch`. `worker.ready` has the agent, which is a `ConversationalAgent`.

    Raises:
        PluginError: the agent cannot hold a conversation.
        TrialError: the conversation cannot be opened.
    """
    plugin = conversational(worker, tries.key.agent)
    seconds = worker.plan.evaluation.execution.timeout_seconds
    opened = worker.context(attrs.evolve(tries, streams=streams), recorder)
    async with opened as context, plugin.open(context) as conversation:
        with ExitStack() as pause:
            pause.enter_context(tries.watch.paused())
            yield OpenConversation(context, conversation, tries.watch, seconds, pause)


def conversational(worker: PlanWorker, agent: str) -> ConversationalAgent:
    """Return an agent by its label. Raises PluginError if it cannot hold a conversation."""
    plugin = worker.ready.agents[agent]
    if not isinstance(plugin, ConversationalAgent):
        raise PluginError(f"the agent {agent!r} cannot hold a conversation: its plugin has no method open()")
    return plugin
