"""The check of agent adapters."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from keval import Message, Usage
from keval.plugin import Agent, Model, TrialError, suggestion
from keval.seams.interfaces import PrerecordedAgent
from keval_testing import agent_conduct as conduct
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
from keval_testing.scripted_model import ScriptedReply, calls_tools, offered_name, refuses, says
from keval_testing.subject import OPTIONS_RULES, Subject, model_options, run_to_end

_MOST_SECONDS = 60.0
_WRONG = calls_tools(("divide", {"a": 1, "b": 0}))


async def answer(trials: Trials) -> None:
    """Open `builder.turn(question)`, and report the tool calls, their results and the final text within it."""
    outcome = await trials.answered(attrs.evolve(ADD, text="Let me add."), FIVE)
    transcript = outcome.transcript
    # Whether that text is reported is another rule, which a framework may be unable to keep.
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
        # Further replies: an SDK that asks again by itself shows by one request too many, or by an answer.
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


# Every adapter gets all of them, so that the last ones have fields of each API.
_BAD_REPLIES = Path(__file__).with_name("bad_replies.txt").read_bytes().split(b"\n")
_ODD_USAGE = Path(__file__).with_name("odd_usage.json").read_bytes()
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


WITHOUT_MODEL: Sequence[Rule] = (conduct.nothing_left_behind, conduct.trials_at_once, conduct.no_other_address)
"""The rules that also hold for an agent that has no model which could be scripted."""
_RULES: Sequence[Rule] = (
    answer, texts_beside_calls, offered_tools, model_calls, prompt, model_headers, calls_of_one_reply, tool_errors,
    tool_errors_told, turns, history, model_errors, retry_after, no_answer, why_no_answer, text_that_ended_early,
    truncated, bad_reply, odd_usage, conduct.cancellation, conduct.trials_at_once, conduct.same_requests,
    conduct.nothing_left_behind, conduct.no_other_address, conduct.key_kept_secret,
)  # fmt: skip
AGENT_RULES: Mapping[str, Rule] = {rule.__name__.replace("_", " "): rule for rule in _RULES}
"""The rules by name. The docstring of each is its remedy."""


async def broken_by(rule: str, stage: AgentStage, make: MakeAgent) -> list[str]:
    """Check one rule and return what breaks it."""
    trials = Trials(stage, make)
    try:
        with conduct.loopback_only(trials.sought):
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
        # The author's reasons come last, as they say more.
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
