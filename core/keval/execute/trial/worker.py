"""A worker: brings a plan up in this process and runs its trials."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from keval.config.evaluation import size
from keval.errors import PluginWarning, TrialError
from keval.execute.attempts import AttemptOutcome, RetryPolicy, Sleep, failure_of, run_attempt
from keval.execute.bringup.preflight import Ready
from keval.execute.bringup.servers import OpenedContext
from keval.execute.models.gate import RequestScope
from keval.execute.trial.reconciliation import asks_again, check, check_text, held_to, merge, shorten
from keval.execute.trial.trial_attempt import LostServerAllowance, TrialAttempt
from keval.plan.plan import Arm, Plan, ResolvedPlugin, trial_seed
from keval.processes import supervised
from keval.records.cassettes import ReplayMissError
from keval.records.end_state import EndState
from keval.records.manifest import Rates
from keval.records.servers import McpServer
from keval.records.transcript import Blob, Transcript
from keval.records.trial import Attempt, Failure, Sample, Trial, TrialKey
from keval.seams import registry
from keval.seams.contexts import Context, Provision, ServerSpec, TrialInfo
from keval.seams.distribution import Outbox
from keval.seams.hooks import Hooks
from keval.seams.interfaces import ConcurrencyLimited, has_flag
from keval.seams.model_text import without_reasoning
from keval.seams.transcript_builder import TranscriptBuilder
from keval.seams.use_meter import UseMeter


@attrs.define(eq=False)
class PlanWorker:
    """Runs the trials of a plan, any number concurrently. Agents whose answers are recorded get no context.

    `rates` are what models cost, for trials with a limit of that.
    """

    plan: Plan
    ready: Ready
    sleep: Sleep = asyncio.sleep
    rng: random.Random | None = None
    rates: Rates = attrs.field(factory=Rates, kw_only=True)
    _places: Mapping[str, int] = attrs.field(init=False)
    _clients: Mapping[str, Mapping[str, int]] = attrs.field(init=False)
    _retry_policy: RetryPolicy = attrs.field(init=False)
    _agents: Mapping[str, ResolvedPlugin] = attrs.field(init=False)
    _arms: Mapping[str, Arm] = attrs.field(init=False)
    _models: Mapping[str, str | None] = attrs.field(init=False)
    _prerecorded: Collection[str] = attrs.field(init=False)
    _seconds: float = attrs.field(init=False)
    _late: TrialError = attrs.field(init=False)
    _make_meter: Callable[..., UseMeter] | None = attrs.field(default=None, init=False)
    _tools: dict[str, Mapping[str, Mapping[str, Any] | None]] = attrs.field(factory=dict, init=False)
    _requests_kept: set[tuple[str, str]] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        execution = self.plan.evaluation.execution
        self._seconds = execution.timeout_seconds
        # one object, by which `_asked` recognises its own time-out
        self._late = TrialError(f"no answer within {self._seconds:g} s", kind="timeout", retryable=True)
        self._places = {
            label: agent.max_concurrency()
            for label, agent in self.ready.agents.items()
            if isinstance(agent, ConcurrencyLimited)
        }
        self._clients = {condition: _clients(found) for condition, found in self.ready.contexts.items()}
        self._retry_policy = RetryPolicy(execution.retry, self.sleep, self.rng or random.Random(execution.seed))
        self._agents = {item.label: item for item in self.plan.agents}
        self._arms = {arm.label: arm for arm in self.plan.arms}
        self._prerecorded = {item.label for item in self.plan.agents if item.prerecorded}
        self._models = {item.label: item.model_name for item in self.plan.agents}
        if execution.limits is not None:
            make = registry.load(registry.find("keval.meters", "limits"))
            self._make_meter = partial(make, attrs.asdict(execution.limits))

    async def run(self, key: TrialKey, sample: Sample, outbox: Outbox) -> Trial:
        """Attempt a trial until it is answered, fails for good, or has used up its attempts."""
        condition = self._arms[key.condition].condition
        prerecorded = key.agent in self._prerecorded
        attempts: list[Attempt] = []
        resamples = 0
        allowance = LostServerAllowance()
        # One for all attempts, as these share the limits of the trial.
        meter = None if prerecorded else self.meter(key.agent)
        while True:
            attempt = TrialAttempt(key, sample, len(attempts) + 1, resamples, outbox, allowance, meter=meter)
            if prerecorded:
                transcript, outcome = await self._recall(attempt)
            else:
                # Waited for outside of the attempt, whose time limit does not run until then.
                async with self._place(f"agent {key.agent}", self._places.get(key.agent)):
                    ask = partial(self._attempt, attempt)
                    transcript, outcome = await prepared(self.ready.hooks, attempt.info, self._seconds, ask)
            complied, outcome = held_to(condition, transcript, outcome)
            # A recorded answer would be the same the next time.
            resample = asks_again(outcome, condition.on_missing_tool_use) and not prerecorded
            done = outcome.failure is None or not (resample or outcome.retryable)
            # Another attempt could ask no model, so it is not begun.
            if not done and meter is not None and (spent := meter.exhausted()):
                outcome, done = AttemptOutcome(outcome.value, failure_of(spent), spent), True
            spared = not done and allowance.excuses()
            if done or (not spared and self._retry_policy.exhausted(sum(each.counted for each in attempts) + 1)):
                # Only now, as a frame has all attempts at the trial.
                traffic = None if prerecorded else self.ready.exchange.traffic
                if traffic is not None and (frame := traffic.frame(attempt.asker)) is not None:
                    outbox.traffic(key.id, frame)
                before = tuple(_without_repeating(attempts, transcript))
                return self.trial(key, sample, transcript, outcome.failure, complied=complied, attempts=before)
            assert outcome.failure is not None  # noqa: S101 - for mypy: it is not done
            attempts.append(Attempt(outcome.failure, transcript, counted=not spared))
            if resample:
                resamples += 1
            else:
                await self._retry_policy.wait(len(attempts), outcome.error)

    def trial(
        self,
        key: TrialKey,
        sample: Sample,
        transcript: Transcript | None,
        failure: Failure | None,
        *,
        complied: bool | None,
        attempts: tuple[Attempt, ...] = (),
    ) -> Trial:
        """Return a trial that has ended, after the `attempts` before its last one."""
        return Trial(
            id=key.id,
            sample=sample.as_had(transcript),
            agent=key.agent,
            condition=key.condition,
            repetition=key.repetition,
            transcript=transcript,
            failure=failure,
            attempts=attempts,
            complied=complied,
            characteristics=self._agents[key.agent].characteristics,
            model=self._models[key.agent],
        )

    @asynccontextmanager
    async def context(self, attempt: TrialAttempt, builder: TranscriptBuilder) -> AsyncIterator[Context]:
        """Enter the condition's contexts for one attempt, and yield what the agent is handed."""
        async with AsyncExitStack() as stack:
            yield await self._enter(stack, attempt, builder)

    async def _enter(self, stack: AsyncExitStack, attempt: TrialAttempt, builder: TranscriptBuilder) -> Context:
        key, sample = attempt.key, attempt.sample
        prompts = [self._arms[key.condition].system_prompt(sample)]
        info, workspace = attempt.info, None
        plugins: tuple[Path, ...] = ()
        if self.plan.tasks is not None:
            with attempt.stopwatch.paused():
                info, workspace = await self.plan.tasks.enter(stack, info, self.ready.agents[key.agent])
        scope = RequestScope(
            attempt.stopwatch,
            builder.requests,
            headers=lambda: attempt.headers,
            traffic=attempt.traffic,
            meter=attempt.meter,
        )
        marked = await stack.enter_async_context(self.ready.exchange.request_scope(attempt.asker, scope))
        attempt = attrs.evolve(attempt, model_headers=self._headers(attempt) | marked)
        servers: list[McpServer] = []
        facts: dict[str, Any] = {}
        # The wait for a place at a server is no part of the trial's time.
        for name, most in self._clients[key.condition].items():
            with attempt.stopwatch.paused():
                await stack.enter_async_context(self._place(f"server {name}", most))
        for opened in self.ready.contexts[key.condition]:
            provision = await stack.enter_async_context(opened.source.open(info))
            if not isinstance(provision, Provision):
                problem = f"a context yielded {provision!r:.100} in place of a Provision"
                raise TrialError(problem, stage="context", kind="bad_context")
            prompts.append(provision.instructions)
            facts |= provision.facts
            plugins += provision.plugins
            builder.requests.text_logs += [provision.text_log] if provision.text_log is not None else []
            servers += [await self._reached(server, opened, stack, attempt, info) for server in provision.servers]
        if workspace is not None:
            with attempt.stopwatch.paused():
                await workspace.begin()
        return Context(
            trial=key.id,
            condition=key.condition,
            repetition=key.repetition,
            attempt=attempt.number,
            instructions=system_prompt(prompts, servers, self.ready.agents[key.agent]),
            servers=tuple(servers),
            model_headers=attempt.model_headers,
            # Not by the arm, so that arms differ in nothing else; an answer that is asked for again has its own.
            seed=trial_seed(self.plan.evaluation.execution.seed, sample.id, key.repetition, attempt.resamples),
            history=sample.history,
            streams=attempt.streams,
            facts=facts,
            workspace=workspace,
            plugins=plugins,
            max_reply_bytes=size(self.plan.evaluation.execution.max_reply_bytes),
            builder=builder,
        )

    def offered_tools(self, condition: str) -> Mapping[str, Mapping[str, Any] | None]:
        """Return the tools of a condition's servers by the names that agents have for them, each with its schema."""
        if condition not in self._tools:
            listings = (listing for opened in self.ready.contexts[condition] for listing in opened.tool_listings)
            found: dict[str, Mapping[str, Any] | None] = {}
            for listing in listings:
                found |= dict.fromkeys(listing.tools)
                found |= {str(tool.get("name")): tool.get("inputSchema") for tool in listing.definitions}
            self._tools[condition] = found
        return self._tools[condition]

    def _place(self, name: str, most: int | None) -> AbstractAsyncContextManager[object]:
        """Return a place among the `most` of this name in the whole run; as many as one wants if that is `None`."""
        return nullcontext() if most is None else self.ready.exchange.limits.place(name, most)

    async def _reached(
        self, server: Any, opened: OpenedContext, stack: AsyncExitStack, attempt: TrialAttempt, info: TrialInfo
    ) -> McpServer:
        """Return how the agent reaches a server that a context gives."""
        if isinstance(server, McpServer):
            return _supervised(server)
        connected = opened.servers.get(getattr(server, "name", ""))
        if connected is None:
            problem = f"a context gave the trial the server {server!r:.100}, which is not one of those it started with"
            raise TrialError(problem, stage="context", kind="bad_context")
        placed = server if info.workspace is None else server.in_workspace(info.workspace)
        of_attempt = {"emit": attempt.emit, "meter": attempt.meter, "model_headers": attempt.model_headers}
        given = opened.given(placed, self.plan.evaluation.execution, info, **of_attempt)
        if opened.recorded is not None:
            given = opened.recorded.served(given, attempt.info, attempt.stopwatch.expire)
        if attempt.traffic is not None:
            given = attempt.traffic.served(given)
        with attempt.stopwatch.paused():  # a trial does not pay for the start of its server with its time
            return _supervised(
                await stack.enter_async_context(connected.open(attempt.allowance.for_next_attempt(given)))
            )

    async def _recall(self, attempt: TrialAttempt) -> tuple[Transcript | None, AttemptOutcome[Transcript]]:
        """Take a recorded answer. No model and no server is involved, so nothing is opened or reconciled."""
        key = attempt.key
        context = Context(trial=key.id, condition=key.condition, repetition=key.repetition)
        agent = self.ready.agents[key.agent]
        outcome = await run_attempt(lambda: agent.run(attempt.sample, context), seconds=None, late=self._late)
        transcript, outcome = _transcript_of(outcome)
        if transcript is not None:
            transcript = without_reasoning(transcript)
            outcome = AttemptOutcome(transcript)
            try:
                check_text(transcript, dict.fromkeys(transcript.tools or ()))
            except TrialError as error:
                outcome = AttemptOutcome.failed(error)
        return transcript, outcome

    async def _attempt(self, attempt: TrialAttempt) -> tuple[Transcript | None, AttemptOutcome[Transcript]]:
        """Attempt a trial once, and have its traffic kept or played."""
        with self.ready.exchange.attempt(attempt.asker, attempt.stopwatch) as traffic:
            return await self._asked(attempt if traffic is None else attrs.evolve(attempt, traffic=traffic))

    async def _asked(self, attempt: TrialAttempt) -> tuple[Transcript | None, AttemptOutcome[Transcript]]:
        """Ask the agent; a failed attempt keeps what its builder had."""
        builder = TranscriptBuilder(
            attempt.stopwatch.now,
            emit=attempt.emit,
            keep=attempt.outbox.blob,
            keep_request=partial(self._keep_request, attempt),
            meter=attempt.meter,
        )
        context = Context(builder=builder)
        instructions: str | None = None  # unknown, if a context did not open
        ended: EndState | None = None
        attempt.begun()
        if attempt.meter is not None:
            attempt.meter.begin(attempt.stopwatch.expire)

        async def asked() -> Transcript:
            nonlocal context, instructions, ended
            if attempt.traffic is not None:
                attempt.traffic.begin()
            async with AsyncExitStack() as stack:
                context = await self._enter(stack, attempt, builder)
                instructions = context.instructions
                try:
                    told = await self.ready.agents[attempt.key.agent].run(attempt.sample, context)
                    # While the context is open, as closing it may end calls that the tap still records.
                    told = merge(without_reasoning(told), context) if _is_transcript(told) else told
                finally:
                    # Also after a failure or a time-out, so that the trial has what the agent had done by then.
                    if context.workspace is not None:
                        with attempt.stopwatch.paused():
                            ended = await context.workspace.end(attempt.outbox.blob)
                if self.plan.tasks is not None and _is_transcript(told):
                    with attempt.stopwatch.paused():
                        ended = await self.plan.tasks.verified(attempt.key, attempt.sample, told, context, ended)
                return told

        seconds = self._seconds if attempt.traffic is None else attempt.traffic.limit(self._seconds)
        tried = await run_attempt(asked, seconds=seconds, late=self._late, stopwatch=attempt.stopwatch)
        overruled = attempt.traffic.overruled(tried.failure, self._late) if attempt.traffic is not None else None
        if error := overruled or _missed(context):
            tried = AttemptOutcome.failed(error)  # whatever the framework made of it
        elif tried.error is self._late and builder.written:
            late = TrialError(f"{self._late}; the program's output ends:\n{builder.written}", kind=self._late.kind)
            tried = AttemptOutcome.failed(late)
        # Not a failure of the trial: the run ends, spends no further trial on the endpoint, and can be resumed.
        if tried.failure is not None and (outage := self.ready.exchange.outage("agent", attempt.key.agent)):
            raise outage
        attempt.allowance.note(context.servers)
        transcript, outcome = _transcript_of(tried)
        if outcome.failure is None and transcript is not None:
            try:
                check(transcript, context)
                check_text(transcript, self.offered_tools(attempt.key.condition))
            except TrialError as error:
                outcome = AttemptOutcome.failed(error)
        transcript = builder.requests.settled(transcript or merge(builder.transcript(), context))
        if attempt.meter is not None and (reached := attempt.meter.end(transcript)):
            outcome = AttemptOutcome.failed(reached)  # whatever else came of it
        told = attrs.evolve(transcript, instructions=instructions, end_state=ended)
        attempt.ended(outcome.failure)
        return self.kept(told, context, attempt.outbox), outcome

    def kept(self, transcript: Transcript, context: Context, outbox: Outbox) -> Transcript:
        """Return a transcript as its trial keeps it; what is kept apart of it goes to the outbox."""
        for server in context.servers:
            for blob in server.log.blobs if server.log else ():
                outbox.blob(blob)
        execution = self.plan.evaluation.execution
        keep = outbox.blob if execution.keep_large_results else None
        return shorten(transcript, size(execution.max_recorded_bytes), keep)

    def meter(self, agent: str) -> UseMeter | None:
        """Return what counts the use of one trial, if trials have limits."""
        if self._make_meter is None:
            return None
        return self._make_meter(self.rates.agents.get(agent), self.rates.of_models(agent))

    def _keep_request(self, attempt: TrialAttempt, request: Blob) -> None:
        """Keep the first model request of a trial: of one trial of each arm, or of all of them if that is asked for.

        It is asked for where traffic is kept or played, too, so that the two can be compared.
        """
        arm = (attempt.key.agent, attempt.key.condition)
        every = self.plan.evaluation.execution.keep_requests or attempt.traffic is not None
        # Each is a file of its own, and for every trial these took longer to write than all else that a trial does.
        if every or arm not in self._requests_kept:
            self._requests_kept.add(arm)
            attempt.outbox.blob(request)

    def _headers(self, attempt: TrialAttempt) -> dict[str, str]:
        endpoint = self.ready.endpoints.get(self._models[attempt.key.agent] or "")
        return attempt.headers if endpoint is not None and endpoint.wants_trial else {}


def _clients(contexts: Iterable[OpenedContext]) -> dict[str, int]:
    """Return how many trials may use each server at once, in an order in which no two trials wait for each other."""
    servers = (server for context in contexts for server in context.source.servers)
    most = {each.name: each.max_clients for each in servers if isinstance(each, ServerSpec) and each.max_clients}
    return dict(sorted(most.items()))


def _missed(context: Context) -> ReplayMissError | None:
    """Return what an agent asked that the recording of a server does not have."""
    missed = (server.log.missed for server in context.servers if server.log is not None)
    return next((ReplayMissError(told) for told in missed if told is not None), None)


def _supervised(server: McpServer) -> McpServer:
    """Return a server that the agent's framework starts, if it does, so that it ends with keval."""
    if server.transport != "stdio" or server.command is None:
        return server
    command, *args = supervised((server.command, *server.args))
    return attrs.evolve(server, command=command, args=tuple(args))


def _without_repeating(attempts: Iterable[Attempt], last: Transcript | None) -> Iterator[Attempt]:
    """Yield attempts without system prompts that are the last attempt's, so that a trial holds each once."""
    for each in attempts:
        earlier = each.transcript
        if earlier is not None and last is not None and earlier.instructions == last.instructions:
            yield attrs.evolve(each, transcript=attrs.evolve(earlier, instructions=None))
        else:
            yield each


def _is_transcript(told: object) -> bool:
    """Return whether an agent returned a Transcript; one of a third party may return anything."""
    return isinstance(told, Transcript)


def _transcript_of(outcome: AttemptOutcome[Transcript]) -> tuple[Transcript | None, AttemptOutcome[Transcript]]:
    """Return the transcript of an attempt. If the agent returned anything else, the attempt failed."""
    if outcome.failure is not None or isinstance(outcome.value, Transcript):
        return outcome.value, outcome
    problem = f"the agent returned {type(outcome.value).__name__} in place of a Transcript"
    return None, AttemptOutcome.failed(TrialError(problem, kind="bad_transcript"))


_Outcome: TypeAlias = tuple[Transcript | None, AttemptOutcome[Transcript]]

_CUT_SHORT = Failure("agent", "cancelled", "the run ended before the trial did")


async def prepared(hooks: Hooks, trial: TrialInfo, seconds: float, ask: Callable[[], Awaitable[_Outcome]]) -> _Outcome:
    """Return what `ask` makes of an attempt, between the hooks that prepare it and clean up after it.

    If it cannot be prepared, `ask` is not called, and the attempt failed. Preparing may take `seconds`, and so may
    cleaning up, which is done however the attempt ends.
    """
    if not hooks.prepare_trials:
        return await ask()
    late = TrialError(f"the hook plugins took more than {seconds:g} s", stage="context", kind="hook_failed")
    # what hooks are told if the attempt is cancelled
    failure: Failure | None = _CUT_SHORT
    try:
        begun = await run_attempt(lambda: hooks.trial_started(trial), seconds=seconds, late=late)
        transcript, outcome = (
            await ask() if begun.error is None else (None, AttemptOutcome[Transcript].failed(begun.error))
        )
        failure = outcome.failure
        return transcript, outcome
    finally:
        ended = await run_attempt(lambda: hooks.trial_ended(trial, failure), seconds=seconds, late=late)
        if ended.failure is not None:
            warnings.warn(f"after the trial {trial.id}: {ended.failure.message}", PluginWarning, stacklevel=2)


_HEADING = """# MCP Server Instructions

The following MCP servers have provided instructions for how to use their tools and resources:"""
"""The words of Claude Code, which other MCP hosts follow."""


def system_prompt(prompts: Iterable[str], servers: Iterable[McpServer], agent: object) -> str:
    """Join the parts of a system prompt, and add a section for each server that has instructions.

    Servers are left out if the agent's framework shows their instructions to its model itself.
    """
    parts, sections = [*prompts], [*_sections(servers)]
    if sections and not has_flag(agent, "shows_server_instructions"):
        parts += sections
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _sections(servers: Iterable[McpServer]) -> Iterator[str]:
    sections = [
        f"## {server.name}\n\n{server.instructions.strip()}"
        for server in servers
        if server.instructions and server.instructions.strip()
    ]
    if sections:
        yield from (_HEADING, *sections)
