"""What every adapter keeps: the same question, tools and model give the same transcript, whatever the framework."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keval import Message, Sample, Transcript, Usage
from keval.execute.trial.reconciliation import merge
from keval.plugin import Closable, Context, Endpoint, Model, ModelError, TrialError
from keval_gateway import ChatReply, ChatRequest, ModelFault, wire_urls
from keval_loopback.serving import serve
from tests.agents.stage import (
    ADAPTERS,
    INSTRUCTIONS,
    OTHER_WIRES,
    OWN_AGENTS,
    QUESTION,
    TOOLS,
    Adapter,
    Outcome,
    Script,
    Stage,
    calls,
    plain,
    says,
)

pytestmark = pytest.mark.parametrize("adapter", [*ADAPTERS, *OTHER_WIRES, *OWN_AGENTS], indirect=True)


@pytest.fixture
def play(runner: asyncio.Runner, stage: Stage, adapter: Adapter) -> Callable[..., Outcome]:
    """Run one trial: `play(reply, ...)` with the model's replies in order."""

    def run(*replies: Script, sample: Sample = QUESTION) -> Outcome:
        left = iter(replies)

        def script(request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
            return next(left)(request)

        return runner.run(asyncio.wait_for(stage.play(adapter, script, sample), 60))

    return run


def spoken(transcript: Transcript) -> list[tuple[str, str, int]]:
    return [(message.role, message.text, message.turn) for message in transcript.messages if message.role != "tool"]


def in_order(texts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether each of `wanted` stands in a text of its own, in this order."""
    left = iter(texts)
    return all(any(want in text for text in left) for want in wanted)


def test_a_question_with_a_tool_call_gives_the_same_transcript(play: Any, adapter: Adapter) -> None:
    outcome = play(calls(("add", {"a": 2, "b": 3}), text="Let me add."), says("It is 5."))

    transcript = outcome.transcript
    assert outcome.error is None
    first = [("assistant", "Let me add.", 0)] if adapter.tells in ("all", "texts") else []
    roles = ["user", *(role for role, _, _ in first), "tool", "assistant"]
    assert [message.role for message in transcript.messages] == roles
    assert spoken(transcript) == [("user", "What is 2 + 3?", 0), *first, ("assistant", "It is 5.", 0)]
    (call,) = transcript.tool_calls
    assert (call.name, dict(call.arguments), call.result, call.error) == ("add", {"a": 2, "b": 3}, "5", None)
    assert (call.server, call.executions, call.turn, transcript.output) == ("sums", 1, 0, "It is 5.")
    assert transcript.tools == (TOOLS if adapter.tells == "all" else None)
    assert transcript.tool_calls_by == ("agent" if adapter.tells == "all" else "tap")
    assert transcript.model_calls_by == ("proxy" if adapter.tells in ("texts", "model") else "agent")
    if adapter.tells == "answer":
        assert (call.model_call, transcript.model_calls, transcript.usage) == (None, None, Usage())
    else:
        assert (call.model_call, transcript.model_calls) == (1, 2)
        assert transcript.usage.input_tokens
        assert transcript.usage.output_tokens
    assert len(transcript.turn_durations) == 1


def test_the_model_gets_the_instructions_the_question_and_no_other_tool(play: Any) -> None:
    outcome = play(calls(("add", {"a": 2, "b": 3})), says("It is 5."))

    assert [sorted(plain(tool.name) for tool in request.tools) for request in outcome.requests] == [[*TOOLS]] * 2
    first, second = ([message.text for message in request.messages] for request in outcome.requests)
    # A2A has no place for a system prompt.
    assert all(INSTRUCTIONS in "".join([request.system, *first[:1]]) for request in outcome.requests)
    assert in_order(first, ["What is 2 + 3?"])
    assert in_order(second, ["What is 2 + 3?", "5"])


def test_two_calls_of_one_reply_are_both_run(play: Any, adapter: Adapter) -> None:
    outcome = play(calls(("add", {"a": 1, "b": 2}), ("add", {"a": 30, "b": 40})), says("3 and 70."))

    told = [(call.result, call.model_call, call.executions) for call in outcome.transcript.tool_calls]
    model_call = None if adapter.tells == "answer" else 1
    assert told == [("3", model_call, 1), ("70", model_call, 1)]
    results = [message.text for message in outcome.requests[1].messages if message.role == "tool"]
    assert in_order(results, ["3", "70"])


def test_an_error_of_a_tool_is_recorded_and_the_trial_goes_on(play: Any, adapter: Adapter) -> None:
    outcome = play(calls(("divide", {"a": 1, "b": 0})), calls(("divide", {"a": 6, "b": 2})), says("It is 3."))

    told = [(call.result, call.error) for call in outcome.transcript.tool_calls]
    assert told == [(None, "Error executing tool divide: nothing can be divided by zero"), ("3", None)]
    model_calls = None if adapter.tells == "answer" else 3
    assert (outcome.error, outcome.transcript.output, outcome.transcript.model_calls) == (None, "It is 3.", model_calls)


def test_what_was_said_earlier_and_every_turn_are_in_one_conversation(play: Any, adapter: Adapter) -> None:
    if adapter.options == OWN_AGENTS["python"].options:
        pytest.skip("a function that returns a text answers one question")

    earlier = (Message("user", "I am Ada."), Message("assistant", "Hello, Ada."))
    history = earlier if adapter.takes_history else ()
    sample = Sample("s1", "What is 2 + 3?", history=history, turns=("And twice that?",))

    outcome = play(calls(("add", {"a": 2, "b": 3})), says("It is 5."), says("It is 10."), sample=sample)

    texts = [message.text for message in outcome.requests[-1].messages]
    said = [*(message.text for message in history), "What is 2 + 3?", "5", "It is 5.", "And twice that?"]
    assert in_order(texts, said)
    assert spoken(outcome.transcript) == [
        ("user", "What is 2 + 3?", 0),
        ("assistant", "It is 5.", 0),
        ("user", "And twice that?", 1),
        ("assistant", "It is 10.", 1),
    ]
    assert outcome.transcript.model_calls == (None if adapter.tells == "answer" else 3)
    assert len(outcome.transcript.turn_durations) == 2


@pytest.mark.parametrize(
    ("status", "kind", "retryable"), [(429, "rate_limit", True), (500, "http_500", True), (401, "http_401", False)]
)
def test_a_model_that_fails_shows_and_is_asked_once(
    play: Any, adapter: Adapter, status: int, kind: str, retryable: bool
) -> None:
    if adapter.tells == "answer":
        pytest.skip("nobody sees the model of a remote agent")

    def refuse(request: ChatRequest) -> ChatReply:
        raise ModelFault(status, "not today", retry_after=7)

    outcome = play(calls(("add", {"a": 2, "b": 3})), refuse)

    error = outcome.error
    assert isinstance(error, ModelError)
    assert (error.status, error.kind, error.retryable) == (status, kind, retryable)
    assert error.retry_after == (7.0 if adapter.passes_retry_after else None)
    assert len(outcome.requests) == 2
    assert [call.result for call in outcome.transcript.tool_calls] == ["5"]
    assert outcome.transcript.output == ""


@pytest.mark.parametrize(
    ("text", "cut", "kind"),
    [
        ("", "length", "cut_off"),
        (" \n", "refusal", "refused"),
        ("", None, "no_answer"),
        ("\u200b\ufe0f", "length", "cut_off"),
        ("\u2060\ufeff\u00ad", None, "no_answer"),
    ],
)
def test_a_reply_without_text_fails_the_trial_by_its_ending(
    play: Any, adapter: Adapter, text: str, cut: Any, kind: str
) -> None:
    # Claude Code asks a model that was cut off, or said nothing, again.
    outcome = play(calls(("add", {"a": 2, "b": 3})), *[lambda request: ChatReply(text, cut=cut)] * 5)

    error = outcome.error
    assert isinstance(error, TrialError)
    # Who tells the answer alone does not tell what ended it.
    assert (error.stage, error.kind) == ("model", kind if adapter.tells != "answer" else "no_answer")
    assert not error.retryable
    assert [call.result for call in outcome.transcript.tool_calls] == ["5"]
    assert bool(outcome.transcript.usage.output_tokens) == (adapter.tells != "answer")


@pytest.mark.parametrize(("cut", "truncated"), [("length", True), ("refusal", False), (None, False)])
def test_a_text_that_ended_early_is_an_answer_and_says_if_a_limit_ended_it(
    play: Any, adapter: Adapter, cut: Any, truncated: bool
) -> None:
    if adapter.module == "keval_claude_code" and cut is not None:
        pytest.skip("Claude Code takes what ended early for an error")

    outcome = play(lambda request: ChatReply("It is", cut=cut))

    told = (outcome.error, outcome.transcript.output, outcome.transcript.truncated)
    assert told == (None, "It is", truncated and adapter.tells != "answer")


def test_a_limit_that_ended_an_earlier_text_is_no_limit_of_the_answer(play: Any, adapter: Adapter) -> None:
    if adapter.module == "keval_claude_code":
        pytest.skip("Claude Code takes what ended early for an error")

    def cut_call(request: ChatRequest) -> ChatReply:
        reply = calls(("add", {"a": 2, "b": 3}), text="Let me")(request)
        assert isinstance(reply, ChatReply)
        return attrs.evolve(reply, cut="length")

    outcome = play(cut_call, says("It is 5."))

    assert (outcome.transcript.output, outcome.transcript.truncated) == ("It is 5.", False)


BAD_REPLIES = (
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

ODD_USAGE = b"""{
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


def test_replies_that_are_none_fail_the_trial_and_may_be_asked_for_again(told_by: Any, adapter: Adapter) -> None:
    told = [(error.stage, error.kind, error.retryable) for error in told_by(*BAD_REPLIES)]

    known = {("model", "bad_reply", True), *([] if adapter.checks_replies else [("model", "no_answer", False)])}
    assert (len(BAD_REPLIES), True) == (len(told), {*told} <= known)


def test_usage_that_is_none_is_unknown_or_may_be_asked_for_again(told_by: Any) -> None:
    (told,) = told_by(ODD_USAGE)

    if isinstance(told, TrialError):
        assert (told.kind, told.retryable) == ("bad_reply", True)
    else:
        assert (told.output, told.usage) == ("Five.", Usage())


@pytest.fixture
def told_by(runner: asyncio.Runner, adapter: Adapter) -> Callable[..., list[Transcript | Exception]]:
    """Run a trial per body that a model's endpoint answers with, and return the transcripts and errors."""
    if adapter.module == "keval_claude_code":
        pytest.skip("Claude Code reads a reply itself, and tells an error in its place")
    if adapter in OWN_AGENTS.values():
        pytest.skip("the user's own code reads the replies")

    async def told(bodies: Sequence[bytes]) -> list[Transcript | Exception]:
        outcomes: list[Transcript | Exception] = []
        body = b""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await Response(body, media_type="application/json")(scope, receive, send)

        async with serve(app) as base:
            agent = adapter.build(Model("simulated", "m", Endpoint("m", wire_urls(base), "key")))
            for body in bodies:  # noqa: B007 - the app reads it
                try:
                    outcomes.append(await agent.run(QUESTION, Context()))
                except Exception as error:  # noqa: BLE001 - the test looks at it
                    outcomes.append(error)
            if isinstance(agent, Closable):
                await agent.aclose()
        return outcomes

    return lambda *bodies: runner.run(asyncio.wait_for(told(bodies), 60))


def test_a_cancelled_trial_leaves_no_process_and_no_task(
    runner: asyncio.Runner, stage: Stage, adapter: Adapter
) -> None:
    async def scenario() -> tuple[set[Any], set[str], list[str]]:
        asked, never = asyncio.Event(), asyncio.Event()

        async def silent(request: ChatRequest) -> ChatReply:
            if request.messages[-1].role != "tool":
                return await answer(calls(("add", {"a": 2, "b": 3})), request)
            asked.set()
            await never.wait()
            return ChatReply("Too late.")

        tasks, processes = asyncio.all_tasks(), children()
        async with stage.trial(adapter, silent, QUESTION) as (context, running):
            await asked.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        left = {task for task in asyncio.all_tasks() - tasks if "uvicorn" not in repr(task)}
        results = [call.result for call in merge(context.builder.transcript(), context).tool_calls]
        return left, children() - processes, [result or "" for result in results]

    assert runner.run(asyncio.wait_for(scenario(), 60)) == (set(), set(), ["5"])


async def answer(script: Script, request: ChatRequest) -> ChatReply:
    reply = script(request)
    return reply if isinstance(reply, ChatReply) else await reply


def children() -> set[str]:
    """The processes that this one has started and that still are."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended, and its children are another's
            found.update((thread / "children").read_text("ascii").split())
    return found
