"""Executing a plan: every trial attempted within its time, retried where that can help, and recorded."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from typing import Any, TypeAlias
from urllib.parse import quote

import attrs

from keval.config.evaluation import Condition, Execution
from keval.contexts import Context, McpServer
from keval.errors import TrialError
from keval.interfaces import Agent, ContextSource, Limited
from keval.models import Endpoint
from keval.recorder import Recorder
from keval.records import Attempt, Characteristics, Failure, Sample, Transcript, Trial
from keval.run.cancellation import apart, being_cancelled
from keval.run.compliance import ToolUseError, check_tool_use, requires_tool_use
from keval.run.plan import Arm, Plan, TrialKey, trial_seed
from keval.run.preflight import Ready
from keval.run.reconcile import check, merge
from keval.run.retry import backoff

__all__ = ["execute"]

_RECORDED_AT_ONCE = 64

Sleep = Callable[[float], Awaitable[None]]
Keep = Callable[[Trial], Coroutine[Any, Any, None]]
Outcome: TypeAlias = tuple[Transcript | None, Failure | None, BaseException | None]
"""What became of an attempt: a transcript, as far as it came; and if it failed, with what, as data and as raised."""


async def execute(
    plan: Plan,
    ready: Ready,
    samples: Sequence[Sample],
    keep: Keep,
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
        places={
            label: asyncio.Semaphore(agent.at_once())
            for label, agent in ready.agents.items()
            if isinstance(agent, Limited)
        },
        sleep=sleep,
        rng=rng or random.Random(execution.seed),
    )
    keys = plan.trials()
    # Where nobody is asked, only the disk is waited for.
    at_once = execution.max_concurrent if len(runner.recorded) < len(plan.agents) else _RECORDED_AT_ONCE
    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, plan.trial_count)):
            group.create_task(_work(keys, runner, keep, group))


async def _work(keys: Iterator[TrialKey], runner: _Runner, keep: Keep, group: asyncio.TaskGroup) -> None:
    """Run trials one after the other; while one is run, the one before is kept."""
    kept: asyncio.Task[None] | None = None
    for key in keys:
        trial = await runner.trial(key)
        if kept is not None:
            await kept
        kept = group.create_task(keep(trial))


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
    places: Mapping[str, asyncio.Semaphore]
    sleep: Sleep
    rng: random.Random

    async def trial(self, key: TrialKey) -> Trial:
        """Attempt a trial until it is completed, cannot be, or was tried often enough."""
        sample = self.samples[key.sample]
        condition = self.arms[key.condition].condition
        attempts: list[Attempt] = []
        rolls = 0
        while True:
            recalled = key.agent in self.recorded
            if recalled:
                outcome = await self._recalled(key, sample)
            else:
                async with self.places.get(key.agent) or nullcontext():
                    outcome = await self._attempt(key, sample, len(attempts) + 1, rolls)
            (transcript, failure, error), complied = _held_to(condition, outcome)
            # A recorded answer would be the same again.
            reroll = isinstance(error, ToolUseError) and condition.on_missing_tool_use == "retry" and not recalled
            again = reroll or (isinstance(error, TrialError) and error.retryable)
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
                    complied=complied,
                    characteristics=self.characteristics[key.agent],
                    model=self.models[key.agent],
                )
            attempts.append(Attempt(failure, transcript))
            if reroll:
                rolls += 1
                continue
            asked = error.retry_after if isinstance(error, TrialError) else None
            await self.sleep(backoff(self.execution.retry, len(attempts), asked, self.rng))

    async def _recalled(self, key: TrialKey, sample: Sample) -> Outcome:
        """Take a recorded answer: nobody is asked, so there is nothing to open, to wait for or to reconcile."""
        context = Context(trial=key.id, condition=key.condition, repetition=key.repetition)
        try:
            return await apart(self.agents[key.agent].run(sample, context)), None, None
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if being_cancelled():
                raise asyncio.CancelledError from error
            return None, _failure(error), error

    async def _attempt(self, key: TrialKey, sample: Sample, attempt: int, rolls: int) -> Outcome:
        """Attempt a trial once; a failed attempt keeps what its recorder had."""
        recorder = Recorder()
        context = Context(recorder=recorder)
        transcript: Transcript | None = None
        limit = asyncio.timeout(self.execution.timeout_seconds)

        async def attempted() -> Transcript:
            nonlocal context
            async with limit, AsyncExitStack() as stack:
                context = await self._context(stack, key, sample, attempt=attempt, rolls=rolls, recorder=recorder)
                return merge(await self.agents[key.agent].run(sample, context), context)

        try:
            transcript = await apart(attempted())
            if limit.expired():
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
        self, stack: AsyncExitStack, key: TrialKey, sample: Sample, *, attempt: int, rolls: int, recorder: Recorder
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
            model_headers=self._headers(key, rolls),
            seed=trial_seed(self.execution.seed, sample.id, key.repetition, rolls),
            recorder=recorder,
        )

    def _headers(self, key: TrialKey, rolls: int) -> dict[str, str]:
        endpoint = self.endpoints.get(self.models[key.agent] or "")
        if endpoint is None or not endpoint.wants_trial:
            return {}
        roll = {"x-keval-resample": str(rolls)} if rolls else {}
        return {"x-keval-trial": quote(key.id, safe=""), "x-keval-repetition": str(key.repetition), **roll}


def _held_to(condition: Condition, outcome: Outcome) -> tuple[Outcome, bool | None]:
    """Hold an answer to the use of tools that its condition requires; says also whether it complied, if it had to."""
    transcript, failure, _ = outcome
    if transcript is None or failure is not None or not requires_tool_use(condition):
        return outcome, None
    try:
        return outcome, check_tool_use(transcript, condition)
    except ToolUseError as error:
        return (outcome if condition.on_missing_tool_use == "keep" else (transcript, _failure(error), error)), False


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
