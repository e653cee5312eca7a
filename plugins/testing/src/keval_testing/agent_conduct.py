"""The rules of agent adapters about what is beside their trials: other trials, the process, the network."""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from ipaddress import ip_address
from itertools import repeat
from typing import Any
from unittest import mock

import attrs

from keval import Sample
from keval.seams.interfaces import ConcurrencyLimited, DeclaresVolatile
from keval_replay.request_comparison import ComparableRequest, first_difference, without_volatile
from keval_testing.agent_stage import ADD, FIVE, BreaksOffError, Trials, error_text, messages_of
from keval_testing.scripted_model import ReceivedRequest, ScriptedReply, calls_tools, refuses, says
from keval_testing.subject import Belongings, own_temporary_folder

_SETTLES, _ENDS, _MEET = 3.0, 10.0, 20.0
"""Seconds for what was told to end, for a trial that is cancelled, and until trials that run at once have all asked."""


async def cancellation(trials: Trials) -> None:
    """Let `CancelledError` pass, end what belongs to the trial in `finally`, and report calls as they happen."""
    asked, never = asyncio.Event(), asyncio.Event()

    async def silent(request: ReceivedRequest) -> ScriptedReply:
        if request.messages[-1].role != "tool":
            return ADD
        asked.set()
        await never.wait()
        return FIVE

    async with (
        _nothing_left(trials),
        trials.stage.agent(trials.make, repeat(silent)) as staged,
        staged.trial() as running,
    ):
        waiting = asyncio.create_task(asked.wait())
        await asyncio.wait((waiting, running.task), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if running.task.done():
            raise BreaksOffError(f"it ends before the model answers: {running.task}")
        running.task.cancel()
        ended, _ = await asyncio.wait((running.task,), timeout=_ENDS)
        if not ended:
            raise BreaksOffError(f"a trial that is cancelled goes on for more than {_ENDS:g} s")
        trials.same("whether a trial that is cancelled ends so", True, running.task.cancelled())
        trials.same("the results before it", ["5"], [call.result for call in running.transcript.tool_calls])


async def nothing_left_behind(trials: Trials) -> None:
    """Close what a trial opens in `finally`, the rest in `aclose()`; change neither environment nor working folder."""
    async with _nothing_left(trials):
        await trials.play(ADD, FIVE)


@contextlib.asynccontextmanager
async def _nothing_left(trials: Trials) -> AsyncIterator[None]:
    """Note the tasks, temporary files and belongings that the block leaves behind."""
    await trials.play(ADD, FIVE)  # what is made for good at its first use is made now
    with own_temporary_folder() as temporary:
        tasks, before = asyncio.all_tasks(), _belongings()

        def left() -> list[str]:
            # A server keeps a connection until its client closes it.
            running = [repr(task.get_coro()) for task in asyncio.all_tasks() - tasks if "uvicorn" not in repr(task)]
            more = _belongings().more_than(before)
            return [*(f"the task {each} still runs" for each in running), *more, *temporary()]

        yield
        until = asyncio.get_running_loop().time() + _SETTLES
        while (found := left()) and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 - it ends elsewhere
            await asyncio.sleep(0.02)
        trials.found += found


def _belongings() -> Belongings:
    """Return what the process has, but for connections, and the threads of pools, which wait for more work."""
    now = Belongings.now()
    threads = frozenset(name for name in now.threads if not name.startswith(("asyncio_", "AnyIO worker thread")))
    return attrs.evolve(now, threads=threads, descriptors=frozenset())


async def trials_at_once(trials: Trials) -> None:
    """Keep what belongs to a trial in `run`, or in what `open` yields, never on the agent, which all trials share."""

    async def reply(request: ReceivedRequest) -> ScriptedReply:
        number = next((number for number in range(9) if f"What is {number} +" in " ".join(request.texts)), 0)
        if request.messages[-1].role == "tool":
            return says(f"It is {number * 2}.")
        # A trial that asks once more, as after a refusal, must not wait for the others again.
        if number not in met:
            met.add(number)
            try:
                await asyncio.wait_for(together.wait(), _MEET)
            except (TimeoutError, asyncio.BrokenBarrierError):
                return refuses(500, "the others have not asked yet: they wait until this trial ends")
        return calls_tools(("add", {"a": number, "b": number}))

    async with trials.stage.agent(trials.make, repeat(reply)) as staged:
        agent = staged.agent
        # No more than the agent runs at once, or those at the barrier would wait for one that may not begin.
        numbers = range(1, 1 + min(3, agent.max_concurrency() if isinstance(agent, ConcurrencyLimited) else 3))
        together, met = asyncio.Barrier(len(numbers)), set[int]()
        samples = {number: Sample(f"s{number}", f"What is {number} + {number}?") for number in numbers}
        outcomes = await asyncio.gather(
            *(staged.play(sample, instructions=f"You are number {number}.") for number, sample in samples.items())
        )
    for number, outcome in zip(numbers, outcomes, strict=True):
        if outcome.error is not None:
            trials.found.append(f"a trial fails that runs beside others: {error_text(outcome.error)}")
            continue
        told = [(dict(call.arguments), call.result) for call in outcome.transcript.tool_calls]
        asked = [text for role, text, _ in messages_of(outcome.transcript) if role == "user"]
        trials.same("what a trial asks beside others", [samples[number].question], asked)
        if staged.script.requests:
            trials.same("what a trial calls beside others", [({"a": number, "b": number}, str(2 * number))], told)
            trials.same("what a trial answers beside others", f"It is {2 * number}.", outcome.transcript.output)
    for request in staged.script.requests:
        told_by = [number for number in numbers if f"What is {number} +" in " ".join(request.texts)]
        given = [number for number in numbers if f"You are number {number}." in " ".join(request.texts[:2])]
        if told_by != given or len(given) != 1:
            trials.found.append(f"a model request has what belongs to other trials: {request.texts}")


async def same_requests(trials: Trials) -> None:
    """Send equal requests in equal trials: draw nothing at random, and declare in `volatile` what cannot but vary."""
    agent = trials.make(trials.stage.models().model)
    volatile = agent.volatile if isinstance(agent, DeclaresVolatile) else ()
    outcomes = [await trials.answered(ADD, FIVE) for _ in range(2)]
    first, again = (
        [
            ComparableRequest("m", request.wire, "POST", "", without_volatile(request.raw, volatile))
            for request in each.requests
        ]
        for each in outcomes
    )
    trials.same("the number of model requests", len(first), len(again))
    for one, other in zip(first, again, strict=False):
        if one != other:
            trials.found.append(f"equal trials send different requests: {first_difference(one, other)}")


async def no_other_address(trials: Trials) -> None:
    """Connect to the model's endpoint and to the context's servers alone; switch off what an SDK sends elsewhere."""
    await trials.play(ADD, FIVE)
    trials.same("the addresses besides", [], trials.sought)


@contextlib.contextmanager
def loopback_only(sought: list[str]) -> Iterator[None]:
    """Refuse what this process sends elsewhere, and add the addresses to `sought`."""
    # Names are watched before they are looked up, as that request, too, leaves this machine.
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def watch(host: object) -> None:
        if not _is_local(host):
            sought.append(str(host))
            raise ConnectionRefusedError(
                f"{host} is not on loopback, and an agent that is checked reaches nothing else"
            )

    def watched_connect(this: socket.socket, address: Any) -> None:
        # The address of a Unix socket is a path.
        watch(address[0] if isinstance(address, tuple) else None)
        connect(this, address)

    def watched_resolve(host: Any, *args: Any, **rest: Any) -> Any:
        watch(host)
        return resolve(host, *args, **rest)

    with (
        mock.patch.object(socket.socket, "connect", watched_connect),
        mock.patch.object(socket, "getaddrinfo", watched_resolve),
    ):
        yield


def _is_local(host: object) -> bool:
    if not isinstance(host, str) or host in ("", "localhost"):
        return True
    with contextlib.suppress(ValueError):
        return ip_address(host).is_loopback
    return False


async def key_kept_secret(trials: Trials) -> None:
    """Show the model's key nowhere: not in the `repr` of the agent, not in messages, not on stdout or stderr."""
    for reply in (FIVE, refuses(401)):
        out, keys = io.StringIO(), list[str]()

        def make(model: Any, keys: list[str] = keys) -> Any:
            keys.append(model.endpoint.api_key)
            return trials.make(model)

        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            async with trials.stage.agent(make, (reply,)) as staged:
                outcome = await staged.play()
        shown: Mapping[str, object] = {
            "the repr of the agent": staged.agent,
            "what is printed": out.getvalue(),
            "the transcript": outcome.transcript,
            "the message of the error": outcome.error,
        }
        trials.found += [
            f"{where} has the key" for where, text in shown.items() if any(key in f"{text!r} {text}" for key in keys)
        ]
