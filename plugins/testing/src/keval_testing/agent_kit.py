"""The check of agent adapters."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from ipaddress import ip_address
from itertools import repeat
from typing import Any
from unittest import mock

import attrs

from keval import Message, Sample, Usage
from keval.plugin import Agent, Model, TrialError, suggestion
from keval.seams.interfaces import ConcurrencyLimited, DeclaresVolatile, PrerecordedAgent
from keval_replay.request_comparison import ComparableRequest, first_difference, without_volatile
from keval_testing.agent_stage import (
    ADD,
    FIVE,
    HEADERS,
    INSTRUCTIONS,
    QUESTION,
    TOOLS,
    AgentStage,
    BreaksOffError,
    MakeAgent,
    Rule,
    Trials,
    error_text,
    in_order,
    messages_of,
)
from keval_testing.scripted_model import ReceivedRequest, ScriptedReply, calls_tools, offered_name, refuses, says
from keval_testing.subject import OPTIONS_RULES, Belongings, Subject, model_options, own_temporary_folder, run_to_end

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
        if number not in met:
            met.add(number)
            try:
                await asyncio.wait_for(together.wait(), _MEET)
            except (TimeoutError, asyncio.BrokenBarrierError):
                return refuses(500, "the others have not asked yet: they wait until this trial ends")
        return calls_tools(("add", {"a": number, "b": number}))

    async with trials.stage.agent(trials.make, repeat(reply)) as staged:
        agent = staged.agent
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
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def watch(host: object) -> None:
        if not _is_local(host):
            sought.append(str(host))
            raise ConnectionRefusedError(
                f"{host} is not on loopback, and an agent that is checked reaches nothing else"
            )

    def watched_connect(this: socket.socket, address: Any) -> None:
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


_MOST_SECONDS = 60.0
_WRONG = calls_tools(("divide", {"a": 1, "b": 0}))


async def answer(trials: Trials) -> None:
    """Open `builder.turn(question)`, and report the tool calls, their results and the final text within it."""
    outcome = await trials.answered(attrs.evolve(ADD, text="Let me add."), FIVE)
    transcript = outcome.transcript
    told = [message for message in messages_of(transcript) if message[1] != "Let me add."]
    asked = [("user", QUESTION.question, 0), ("tool", "5", 0), ("assistant", "It is 5.", 0)]
    trials.same("the messages", asked, told)
    made = [
        (call.name, dict(call.arguments), call.result, call.error, call.server, call.executions, call.turn)
        for call in transcript.tool_calls
    ]
    trials.same("the tool calls", [("add", {"a": 2, "b": 3}, "5", None, "sums", 1, 0)], made)
    trials.same("the answer", "It is 5.", transcript.output)
    trials.same("the number of timed turns", 1, len(transcript.turn_durations))
    if transcript.model_calls is None:
        trials.same("the tokens of model calls that it does not count", Usage(), transcript.usage)


async def texts_beside_calls(trials: Trials) -> None:
    """Report the text of every reply with `builder.said`, also of one that calls tools, before its calls."""
    outcome = await trials.answered(attrs.evolve(ADD, text="Let me add."), FIVE)
    texts = [text for _, text, _ in messages_of(outcome.transcript)]
    trials.same("the texts", [QUESTION.question, "Let me add.", "5", "It is 5."], texts)


async def offered_tools(trials: Trials) -> None:
    """Report the tools of each model request with `builder.offered`, by the names that their servers give them."""
    outcome = await trials.answered(ADD, FIVE)
    trials.same("the tools that it reports", TOOLS, outcome.transcript.tools)
    trials.same("who tells of the tool calls", "agent", outcome.transcript.tool_calls_by)


async def model_calls(trials: Trials) -> None:
    """Report each reply with `builder.model_called(usage)` before its tool calls, or be `usage_by_proxy`."""
    outcome = await trials.answered(ADD, FIVE)
    transcript = outcome.transcript
    trials.same("the model calls", 2, transcript.model_calls)
    trials.same("the model call that asked for the tool", [1], [call.model_call for call in transcript.tool_calls])
    tokens = transcript.usage.input_tokens, transcript.usage.output_tokens
    trials.same("whether tokens are known, in and out", (True, True), tuple(map(bool, tokens)))


async def prompt(trials: Trials) -> None:
    """Send `context.instructions` as the system prompt, the question, each tool's result, and the context's tools."""
    outcome = await trials.answered(ADD, FIVE)
    trials.same("the number of model requests", 2, len(outcome.requests))
    for request in outcome.requests:
        offered = sorted(offered_name(tool, request.tools) for tool in TOOLS)
        trials.same("the tools that the model is offered", offered, sorted(request.tools))
        # A framework without a place for a system prompt puts it before the first message.
        if INSTRUCTIONS not in "".join(request.texts[:2]):
            trials.found.append(f"the model is not given the instructions {INSTRUCTIONS!r}: {request.texts}")
    for request, wanted in zip(outcome.requests, ([QUESTION.question], [QUESTION.question, "5"]), strict=False):
        if not in_order(request.texts, wanted):
            trials.found.append(f"the model is not told {wanted} in this order: {request.texts}")


async def model_headers(trials: Trials) -> None:
    """Send `context.model_headers` with every model request, or be `requests_by_proxy`."""
    outcome = await trials.answered(ADD, FIVE)
    for request in outcome.requests:
        sent = {name: request.headers.get(name) for name in HEADERS}
        trials.same("the headers that mark the trial", HEADERS, sent)


async def calls_of_one_reply(trials: Trials) -> None:
    """Run every tool call of a reply, and give the model all results in one request, in the order of the calls."""
    both = calls_tools(("add", {"a": 1, "b": 2}), ("add", {"a": 30, "b": 40}))
    outcome = await trials.answered(both, says("3 and 70."))
    told = [(call.result, call.executions) for call in outcome.transcript.tool_calls]
    trials.same("the results and executions", [("3", 1), ("70", 1)], told)
    if len({call.model_call for call in outcome.transcript.tool_calls}) != 1:
        trials.found.append("the two calls of one reply are told as calls of two")
    results = [message.text for message in outcome.requests[1].messages if message.role == "tool"]
    if not in_order(results, ["3", "70"]):
        trials.found.append(f"the model is not given both results: {results}")


async def tool_errors(trials: Trials) -> None:
    """Report a call that failed with `builder.returned(error=…)`, and go on."""
    outcome = await trials.answered(_WRONG, calls_tools(("divide", {"a": 6, "b": 2})), says("It is 3."))
    told = [(call.result, call.error) for call in outcome.transcript.tool_calls]
    trials.same("the results and errors", [(None, "nothing can be divided by zero"), ("3", None)], told)
    trials.same("the answer", "It is 3.", outcome.transcript.output)


async def tool_errors_told(trials: Trials) -> None:
    """Give the model what the server says of a call that failed, as it gives it a result."""
    outcome = await trials.answered(_WRONG, says("It is 3."))
    if not any("divided by zero" in text for text in outcome.requests[1].texts):
        trials.found.append(f"the model is not told the error: {outcome.requests[1].texts}")


async def turns(trials: Trials) -> None:
    """Ask everything in `sample.asked` in one session, each within a `builder.turn` of its own."""
    sample = attrs.evolve(QUESTION, turns=("And twice that?",))
    outcome = await trials.answered(ADD, FIVE, says("It is 10."), sample=sample)
    spoken = [message for message in messages_of(outcome.transcript) if message[0] != "tool"]
    first = [("user", QUESTION.question, 0), ("assistant", "It is 5.", 0)]
    trials.same("what was said", [*first, ("user", "And twice that?", 1), ("assistant", "It is 10.", 1)], spoken)
    trials.same("the number of timed turns", 2, len(outcome.transcript.turn_durations))
    texts = outcome.requests[-1].texts
    if not in_order(texts, [QUESTION.question, "5", "It is 5.", "And twice that?"]):
        trials.found.append(f"the model is not told in the second turn what was said in the first: {texts}")


async def history(trials: Trials) -> None:
    """Begin the conversation with `context.history`, and report no part of it as messages of the trial."""
    earlier = (Message("user", "I am Ada."), Message("assistant", "Hello, Ada."))
    outcome = await trials.answered(FIVE, sample=attrs.evolve(QUESTION, history=earlier))
    texts = outcome.requests[-1].texts
    if not in_order(texts, ["I am Ada.", "Hello, Ada.", QUESTION.question]):
        trials.found.append(f"the model is not told what was said earlier: {texts}")
    trials.same("the first message", ("user", QUESTION.question, 0), messages_of(outcome.transcript)[0])


async def model_errors(trials: Trials) -> None:
    """Raise `ModelError(…, status=…)` for what the endpoint refuses, and switch the SDK's own retries off."""
    for status, kind, retryable in ((429, "rate_limit", True), (500, "http_500", True), (401, "http_401", False)):
        error, outcome = await trials.failed(ADD, refuses(status), *[FIVE] * 3)
        told = (getattr(error, "status", None), error.kind, error.retryable)
        trials.same(f"status, kind and whether it is retryable, of HTTP {status}", (status, kind, retryable), told)
        trials.same(f"the model requests up to HTTP {status}", 2, len(outcome.requests))
        trials.same("the results before it", ["5"], [call.result for call in outcome.transcript.tool_calls])
        trials.same("the answer of a trial that failed", "", outcome.transcript.output)


async def retry_after(trials: Trials) -> None:
    """Give `ModelError` the seconds of the header Retry-After: `retry_after_seconds(header)` reads it."""
    error, _ = await trials.failed(refuses(429, retry_after=7))
    trials.same("the wait that the endpoint asks for", 7.0, error.retry_after)


_BLANK = (
    (says("", cut="length"), "cut_off"),
    (says(" \n", cut="refusal"), "refused"),
    (says(""), "no_answer"),
    (says("\u200b\ufe0f", cut="length"), "cut_off"),
    (says("\u2060\ufeff\u00ad"), "no_answer"),
)
"""Replies that say nothing, and what kind of failure each is."""
_AGAIN = 5
"""How often a model says so: some programs ask again."""


async def no_answer(trials: Trials) -> None:
    """Fail the trial if a reply has neither text nor calls: `builder.turn` does so, if nothing is said in its place."""
    for reply, _ in _BLANK:
        error, outcome = await trials.failed(ADD, *[reply] * _AGAIN)
        trials.same("the stage, and whether it is retryable", ("model", False), (error.stage, error.retryable))
        trials.same("the results before it", ["5"], [call.result for call in outcome.transcript.tool_calls])


async def why_no_answer(trials: Trials) -> None:
    """Raise `MAX_OUTPUT_TOKENS.no_answer()` or `REFUSAL.no_answer()` where the API says why a reply is empty."""
    for reply, kind in _BLANK[:3]:
        error, outcome = await trials.failed(ADD, *[reply] * _AGAIN)
        trials.same("the kind of failure", kind, error.kind)
        trials.same("whether output tokens are known", True, bool(outcome.transcript.usage.output_tokens))


async def text_that_ended_early(trials: Trials) -> None:
    """Take a text that a limit or a refusal ended for the answer."""
    for cut in ("length", "refusal"):
        outcome = await trials.answered(says("It is", cut=cut))
        trials.same(f"the answer that ended by {cut}", "It is", outcome.transcript.output)


async def truncated(trials: Trials) -> None:
    """Report a text that a limit of length ended with `builder.said(text, truncated=True)`, and no other."""
    cut_call = attrs.evolve(ADD, text="Let me", cut="length")
    for replies, wanted in (
        ([says("It is", cut="length")], True),
        ([says("It is", cut="refusal")], False),
        ([cut_call, FIVE], False),
    ):
        outcome = await trials.answered(*replies)
        ends = [(reply.text, reply.cut) for reply in replies]
        trials.same(f"whether the answer is truncated after {ends}", wanted, outcome.transcript.truncated)


_BAD_REPLIES = (
    b'{"id": "x", "choices": [{"mess',
    b"<html>It works!</html>",
    b"[1, 2]",
    b"",
    b"{}",
    b'{"id": "x", "choices": [], "output": null, "content": null}',
    (
        b'{"id": "x", "status": "completed", "content": [{"type": "text", "text": 1}],'
        b' "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": [1]}}],'
        b' "output": [{"type": "message", "id": "m", "content": [{"type": "output_text", "text": 1}]}],'
        b' "candidates": [{"content": {"parts": [{"text": 1}]}}]}'
    ),
    (
        b'{"id": "x", "status": "completed", "stop_reason": "tool_use", "candidates": [null],'
        b' "content": [{"type": "tool_use", "id": 7, "name": 7, "input": {}}],'
        b' "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",'
        b' "tool_calls": [{"id": 7, "type": "function", "function": {"name": 7, "arguments": "{}"}}]}}],'
        b' "output": [{"type": "function_call", "id": "f", "call_id": 7, "name": 7, "arguments": "{}"}]}'
    ),
)
_ODD_USAGE = b"""{
  "id": "x", "object": "chat.completion", "created": 0, "model": "m", "type": "message", "role": "assistant",
  "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Five."}}],
  "status": "completed", "created_at": 0, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
  "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Five.", "annotations": []}]}],
  "content": [{"type": "text", "text": "Five."}], "stop_reason": "end_turn",
  "candidates": [{"content": {"role": "model", "parts": [{"text": "Five."}]}, "finishReason": "STOP"}],
  "usage": {"prompt_tokens": "many", "completion_tokens": -1, "total_tokens": null, "input_tokens": "many",
    "output_tokens": [], "prompt_tokens_details": 7, "input_tokens_details": 7},
  "usageMetadata": {"promptTokenCount": "many"}
}"""
"""A reply of every API at once, with token counts that are none."""


def _raw(body: bytes) -> ScriptedReply:
    async def send(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
        yield body

    return ScriptedReply(send=send)


async def bad_reply(trials: Trials) -> None:
    """Raise `TrialError(…, stage="model", kind="bad_reply", retryable=True)` if a reply has not the API's shape."""
    for body in _BAD_REPLIES:
        error, _ = await trials.failed(_raw(body))
        told = error.stage, error.kind, error.retryable
        trials.same(f"stage, kind and whether to ask again, of {body!r}", ("model", "bad_reply", True), told)


async def odd_usage(trials: Trials) -> None:
    """Take token counts that are no numbers for unknown (`Usage()`), or the reply for a `bad_reply`."""
    outcome = await trials.play(_raw(_ODD_USAGE))
    if isinstance(outcome.error, TrialError):
        trials.same("the failure", ("bad_reply", True), (outcome.error.kind, outcome.error.retryable))
    elif outcome.error is not None:
        trials.found.append(f"the trial fails: {error_text(outcome.error)}")
    else:
        known = (outcome.transcript.output, outcome.transcript.usage)
        trials.same("the answer and the usage", ("Five.", Usage()), known)


WITHOUT_MODEL: Sequence[Rule] = (nothing_left_behind, trials_at_once, no_other_address)
"""The rules that also hold for an agent that has no model which could be scripted."""
_RULES: Sequence[Rule] = (
    answer, texts_beside_calls, offered_tools, model_calls, prompt, model_headers, calls_of_one_reply, tool_errors,
    tool_errors_told, turns, history, model_errors, retry_after, no_answer, why_no_answer, text_that_ended_early,
    truncated, bad_reply, odd_usage, cancellation, trials_at_once, same_requests,
    nothing_left_behind, no_other_address, key_kept_secret,
)  # fmt: skip
AGENT_RULES: Mapping[str, Rule] = {rule.__name__.replace("_", " "): rule for rule in _RULES}
"""The rules by name. The docstring of each is its remedy."""


async def broken_by(rule: str, stage: AgentStage, make: MakeAgent) -> list[str]:
    """Check one rule and return what breaks it."""
    trials = Trials(stage, make)
    try:
        with loopback_only(trials.sought):
            async with asyncio.timeout(_MOST_SECONDS):
                await AGENT_RULES[rule](trials)
    except BreaksOffError as error:
        trials.found.append(str(error))
    except TimeoutError:
        trials.found.append(f"its trials do not end within {_MOST_SECONDS:g} s")
    except Exception as error:  # noqa: BLE001 - whatever the agent raises where nothing may be raised
        trials.found.append(error_text(error))
    return trials.found


_REMEDIES = {
    **OPTIONS_RULES,
    **{name: " ".join((inspect.getdoc(rule) or "").split()) for name, rule in AGENT_RULES.items()},
}


def check_agent(
    agent: str | type | object, *, options: Mapping[str, Any] | None = None, cannot: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Check an agent adapter by `AGENT_RULES`; it is a name, as a config has it, a class or an instance.

    It is given a scripted model for each of its options of type `Model`, and an MCP server behind keval's tap.
    `options` are those of a config, for a name or a class. `cannot` names rules that its framework does not allow it to
    keep, each with the reason: they are not checked. Call it where no event loop runs.

    Returns the rules that were not checked, with reasons. An agent without an option of type `Model` is checked by the
    rules that need no script; one that returns recorded answers, by its options.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such agent is installed, `options` do not construct it, or a package is missing that serves the
            model or connects to the server.
    """
    for rule in (cannot := cannot or {}):
        if rule not in AGENT_RULES:
            raise ValueError(f"agents have no rule {rule!r}{suggestion(rule, AGENT_RULES, 'the rules are')}")
    subject = Subject.of("keval.agents", agent, options, _REMEDIES)
    models = model_options(subject.target)
    subject = attrs.evolve(subject, options={**dict.fromkeys(models, "scripted/model"), **subject.options})
    skipped = dict(cannot)
    if subject.check_options():
        skipped = {**_unscripted(subject.new(), bool(models)), **cannot}

        def make(model: Model) -> Agent:
            made: Any = subject.new()
            agent: Agent = attrs.evolve(made, **dict.fromkeys(models, model)) if models else made
            return agent

        async def check() -> None:
            async with AgentStage.open() as stage:
                for rule in (name for name in AGENT_RULES if name not in skipped):
                    for what in await broken_by(rule, stage, make):
                        subject.broken(rule, what)

        run_to_end(subject, check())
    subject.finish()
    return skipped


def _unscripted(agent: Any, has_model: bool) -> dict[str, str]:
    """Return the rules that cannot be checked, as no model of the agent's can be scripted."""
    if isinstance(agent, PrerecordedAgent):
        return dict.fromkeys(AGENT_RULES, "its answers exist already")
    why = "it has no option of type Model, so that nothing it is answered can be scripted"
    return {} if has_model else {name: why for name, rule in AGENT_RULES.items() if rule not in WITHOUT_MODEL}
