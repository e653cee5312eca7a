"""Executing a plan: every trial attempted within its time, retried where that can help, and recorded."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TypeAlias
from urllib.parse import quote

import attrs

from keval.config.evaluation import Execution
from keval.contexts import Context, McpServer
from keval.errors import TrialError
from keval.interfaces import Agent, ContextSource
from keval.models import Endpoint
from keval.recorder import Recorder
from keval.records import Attempt, Characteristics, Failure, Sample, Transcript, Trial
from keval.run.cancellation import being_cancelled
from keval.run.plan import Arm, Plan, TrialKey, trial_seed
from keval.run.preflight import Ready
from keval.run.reconcile import check, merge
from keval.run.retry import backoff

__all__ = ["execute"]

_RECORDED_AT_ONCE = 64

Sleep = Callable[[float], Awaitable[None]]
Outcome: TypeAlias = tuple[Transcript | None, Failure | None, BaseException | None]
"""What became of an attempt: a transcript, as far as it came; and if it failed, with what, as data and as raised."""


async def execute(
    plan: Plan,
    ready: Ready,
    samples: Sequence[Sample],
    keep: Callable[[Trial], Awaitable[None]],
    *,
    sleep: Sleep = asyncio.sleep,
    rng: random.Random | None = None,
) -> None:
    """Run every trial of the plan over the prepared `samples`, at most `max_concurrent` at once if anyone is asked.

    `keep` is awaited for every finished trial, failed ones included; what it raises ends the run.
    """
    execution = plan.evaluation.execution
    runner = _Runner(
        execution=execution,
        samples=samples,
        agents=ready.agents,
        recorded={agent.label for agent in plan.agents if agent.recording},
        sources=ready.sources,
        arms={arm.label: arm for arm in plan.arms},
        characteristics={item.label: item.characteristics for item in plan.agents},
        models={item.label: str(item.model) if item.model else None for item in plan.agents},
        endpoints=ready.endpoints,
        sleep=sleep,
        rng=rng or random.Random(execution.seed),
    )
    keys = plan.trials()
    # Where nobody is asked, only the disk is waited for.
    at_once = execution.max_concurrent if len(runner.recorded) < len(plan.agents) else _RECORDED_AT_ONCE
    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, plan.trial_count)):
            group.create_task(_work(keys, runner, keep))


async def _work(keys: Iterator[TrialKey], runner: _Runner, keep: Callable[[Trial], Awaitable[None]]) -> None:
    for key in keys:
        await keep(await runner.trial(key))


@attrs.frozen
class _Runner:
    """Runs one trial at a time, for any number of workers; agents that are `recorded` get no context."""

    execution: Execution
    samples: Sequence[Sample]
    agents: Mapping[str, Agent]
    recorded: Collection[str]
    sources: Mapping[str, tuple[ContextSource, ...]]
    arms: Mapping[str, Arm]
    characteristics: Mapping[str, Characteristics | None]
    models: Mapping[str, str | None]
    endpoints: Mapping[str, Endpoint]
    sleep: Sleep
    rng: random.Random

    async def trial(self, key: TrialKey) -> Trial:
        """Attempt a trial until it is completed, cannot be, or was tried often enough."""
        sample = self.samples[key.sample]
        attempts: list[Attempt] = []
        while True:
            if key.agent in self.recorded:
                transcript, failure, error = await self._recalled(key, sample)
            else:
                transcript, failure, error = await self._attempt(key, sample, len(attempts) + 1)
            again = isinstance(error, TrialError) and error.retryable
            if failure is None or not again or len(attempts) + 1 >= self.execution.retry.max_attempts:
                return Trial(
                    id=key.id,
                    sample=sample,
                    agent=key.agent,
                    condition=key.condition,
                    repetition=key.repetition,
                    transcript=transcript,
                    failure=failure,
                    attempts=tuple(attempts),
                    characteristics=self.characteristics[key.agent],
                    model=self.models[key.agent],
                )
            attempts.append(Attempt(failure, transcript))
            asked = error.retry_after if isinstance(error, TrialError) else None
            await self.sleep(backoff(self.execution.retry, len(attempts), asked, self.rng))

    async def _recalled(self, key: TrialKey, sample: Sample) -> Outcome:
        """Take a recorded answer: nobody is asked, so there is nothing to open, to wait for or to reconcile."""
        context = Context(trial=key.id, condition=key.condition, repetition=key.repetition)
        try:
            return await self.agents[key.agent].run(sample, context), None, None
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if being_cancelled():
                raise asyncio.CancelledError from error
            return None, _failure(error), error

    async def _attempt(self, key: TrialKey, sample: Sample, attempt: int) -> Outcome:
        """Attempt a trial once; a failed attempt keeps what its recorder had."""
        recorder = Recorder()
        context = Context(recorder=recorder)
        transcript: Transcript | None = None
        limit = asyncio.timeout(self.execution.timeout_seconds)
        try:
            async with limit, AsyncExitStack() as stack:
                context = await self._context(stack, key, sample, attempt, recorder)
                transcript = merge(await self.agents[key.agent].run(sample, context), context)
            if limit.expired() or being_cancelled():
                raise asyncio.CancelledError
            check(transcript, context)
        except (Exception, SystemExit, asyncio.CancelledError) as caught:
            # The seam: whatever a trial raises is that trial's failure, unless it is the run that ends. An agent may
            # have made something else of that, or an answer; neither is kept, and its worker does not go on.
            if being_cancelled():
                raise asyncio.CancelledError from caught
            error: BaseException = _told(caught)
            if limit.expired():
                error = TrialError(f"no answer within {self.execution.timeout_seconds:g} s", kind="timeout")
            elif isinstance(error, asyncio.CancelledError):
                error = TrialError("the agent was cancelled from inside", kind="cancelled", retryable=True)
            return transcript or merge(recorder.transcript(), context), _failure(error), error
        return transcript, None, None

    async def _context(
        self, stack: AsyncExitStack, key: TrialKey, sample: Sample, attempt: int, recorder: Recorder
    ) -> Context:
        """Open the condition's contexts for this attempt and put them together."""
        prompts = [self.arms[key.condition].prompt.render(sample)]
        servers: list[McpServer] = []
        for source in self.sources[key.condition]:
            part = await stack.enter_async_context(source.open(sample, key.id))
            prompts.append(part.instructions)
            servers.extend(part.servers)
        return Context(
            trial=key.id,
            condition=key.condition,
            repetition=key.repetition,
            attempt=attempt,
            instructions="\n\n".join(prompt.strip() for prompt in prompts if prompt.strip()),
            servers=tuple(servers),
            model_headers=self._headers(key),
            seed=trial_seed(self.execution.seed, sample.id, key.repetition),
            recorder=recorder,
        )

    def _headers(self, key: TrialKey) -> dict[str, str]:
        endpoint = self.endpoints.get(self.models[key.agent] or "")
        if endpoint is None or not endpoint.wants_trial:
            return {}
        return {"x-keval-trial": quote(key.id, safe=""), "x-keval-repetition": str(key.repetition)}


def _told(error: BaseException) -> BaseException:
    """Find the explained error inside a group: task groups wrap what their tasks raise."""
    if isinstance(error, BaseExceptionGroup):
        told = [_told(inner) for inner in error.exceptions]
        return next((inner for inner in told if isinstance(inner, TrialError)), error)
    return error


def _failure(error: BaseException) -> Failure:
    if isinstance(error, TrialError):
        return Failure(error.stage, error.kind, str(error))
    text = "".join(traceback.format_exception(error))
    return Failure("agent", type(error).__name__, str(error) or type(error).__name__, text)
