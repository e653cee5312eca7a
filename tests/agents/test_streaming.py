"""What every adapter keeps when somebody reads along: the pieces are what is said, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import chain, repeat
from typing import Any

import attrs
import pytest

from keval import Sample, Transcript
from keval.plugin import ModelError, TrialError
from keval_gateway import ModelFault
from keval_gateway.protocols import PROTOCOLS
from keval_gateway.protocols.protocol import frame
from keval_testing import calls_tools, refuses, says
from keval_testing.agent_stage import QUESTION, AgentStage, Outcome
from keval_testing.scripted_model import ReceivedRequest, Reply, ScriptedReply, Send
from tests.agents.stage import ADAPTERS, OTHER_WIRES, Adapter

ANSWER = "It is 5, says the server; “fünf” in German. " * 4
# Both results are the same, as either may be first.
ADDS = calls_tools(("add", {"a": 2, "b": 3}), ("divide", {"a": 10, "b": 2}), text="Let me add these two numbers.")
TURNS = Sample("s1", "What is 2 + 3?", turns=("Thank you!",))

every_wire = pytest.mark.parametrize(
    "adapter", [*ADAPTERS, *(pytest.param(wire, marks=pytest.mark.slow) for wire in OTHER_WIRES)], indirect=True
)
"""For what depends on how the framework reads a wire's stream."""


@pytest.fixture
def play(runner: asyncio.Runner, stage: AgentStage, adapter: Adapter) -> Callable[..., Outcome]:
    """Run one trial: `play(reply, ..., streams=...)` with the model's replies in order, the last again and again."""

    async def trial(replies: Sequence[Reply], sample: Sample, rest: dict[str, Any]) -> Outcome:
        async with stage.agent(adapter.build, chain(replies, repeat(replies[-1]))) as staged:
            return await staged.play(sample, **rest)

    def run(*replies: Reply, sample: Sample = QUESTION, **rest: Any) -> Outcome:
        return runner.run(asyncio.wait_for(trial(replies, sample, rest), 60))

    return run


@every_wire
def test_the_pieces_are_what_is_said_and_the_transcript_is_the_same(play: Any) -> None:
    replies = (ADDS, says(ANSWER), says("You are welcome."))
    whole, streamed = (play(*replies, sample=TURNS, streams=streams) for streams in (False, True))

    assert whole.error is streamed.error is None
    assert timeless(whole.transcript) == timeless(streamed.transcript)
    said = [message.text for message in streamed.transcript.messages if message.role == "assistant"]
    assert [(text, text) for text in said] == pieced(streamed)
    turns = [data["turn"] for kind, data in streamed.events if kind == "text_streamed"]
    assert (len(ANSWER) // 24 < turns.count(0), 1) == (True, turns.count(1))
    # Apart from the pieces, the same happens, in the same order.
    assert [kind for kind, _ in whole.events] == [kind for kind, _ in streamed.events if kind != "text_streamed"]


def test_a_piece_is_told_while_the_model_still_writes(play: Any) -> None:
    read = asyncio.Event()

    async def slowly(pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
        half = len(pieces) // 2
        for piece in pieces[:half]:
            yield piece
        await asyncio.wait_for(read.wait(), 10)
        for piece in pieces[half:]:
            yield piece

    def emit(kind: str, data: object) -> None:
        if kind == "text_streamed":
            read.set()

    outcome = play(says(ANSWER, send=slowly), streams=True, emit=emit)

    assert outcome.error is None
    assert [(ANSWER, ANSWER)] == pieced(outcome)


async def dropped(pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
    body = b"".join(pieces)
    yield body[: len(body) // 2]
    yield None


async def ended(pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
    """Half of a response as if that was all; of a stream of events, half of the events."""
    body = b"".join(pieces)
    for piece in pieces[: len(pieces) // 2] if len(pieces) > 1 else [body[: len(body) // 2]]:
        yield piece


async def nothing(pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
    for piece in pieces[:0]:
        yield piece


@pytest.mark.parametrize("send", [dropped, ended, nothing])
def test_a_reply_that_breaks_off_fails_as_it_does_whole(play: Any, adapter: Adapter, send: Send) -> None:
    if adapter.module == "keval_claude_code":
        pytest.skip("Claude Code has its replies streamed always")

    whole, streamed = (play(attrs.evolve(ADDS, send=send), streams=streams) for streams in (False, True))

    assert isinstance(whole.error, TrialError)
    assert isinstance(streamed.error, TrialError)
    assert fault(whole.error) == fault(streamed.error)
    assert streamed.error.retryable
    # Of a reply of nothing at all, ADK makes one that is counted.
    kept = [attrs.evolve(timeless(each.transcript), model_calls=None) for each in (whole, streamed)]
    assert kept[0] == kept[1]


ENDS = (b'"finish_reason":"', b'"finishReason"', b"message_delta", b"response.completed")


@every_wire
@pytest.mark.parametrize("reply", [says(ANSWER), ADDS], ids=["text", "call"])
def test_a_reply_without_its_end_is_not_taken_for_a_whole_one(
    play: Any, adapter: Adapter, reply: ScriptedReply
) -> None:
    if adapter.module == "keval_claude_code" and reply is ADDS:
        pytest.skip("Claude Code runs a call before its message has ended")

    async def unended(pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
        for piece in pieces:
            if any(mark in piece for mark in ENDS):
                return
            yield piece

    outcome = play(attrs.evolve(reply, send=unended), streams=True)

    assert isinstance(outcome.error, TrialError)
    assert ("model", True) == (outcome.error.stage, outcome.error.retryable)
    assert not outcome.transcript.tool_calls
    assert "said" not in [kind for kind, _ in outcome.events] or adapter.module == "keval_claude_code"


@every_wire
def test_a_failure_that_is_told_within_a_stream_is_one_of_the_model(play: Any) -> None:
    def limited(request: ReceivedRequest) -> ScriptedReply:
        async def send(pieces: Sequence[bytes]) -> AsyncIterator[bytes | None]:
            for piece in pieces[: len(pieces) // 2]:
                yield piece
            wire = request.wire
            yield frame(PROTOCOLS[wire].fault(ModelFault(429, "too many")), None if wire == "gemini" else "error")

        return says(ANSWER, send=send)

    outcome = play(limited, streams=True)

    assert isinstance(outcome.error, TrialError)
    assert ("model", "rate_limit", True) == fault(outcome.error)
    assert "too many" in str(outcome.error)
    assert "" == outcome.transcript.output


def test_a_refusal_is_the_same_failure_streamed_or_not(play: Any) -> None:
    whole, streamed = (play(ADDS, refuses(429, retry_after=7), streams=streams) for streams in (False, True))

    assert isinstance(whole.error, ModelError)
    assert isinstance(streamed.error, ModelError)
    assert (str(whole.error), fault(whole.error)) == (str(streamed.error), fault(streamed.error))
    assert whole.error.retry_after == streamed.error.retry_after
    assert timeless(whole.transcript) == timeless(streamed.transcript)


@pytest.mark.parametrize("cut", ["length", None])
def test_a_reply_without_text_fails_by_its_ending(play: Any, cut: Any) -> None:
    whole, streamed = (play(says("", cut=cut), streams=streams) for streams in (False, True))

    assert isinstance(whole.error, TrialError)
    assert isinstance(streamed.error, TrialError)
    assert fault(whole.error) == fault(streamed.error)
    assert timeless(whole.transcript) == timeless(streamed.transcript)


@every_wire
def test_a_text_that_a_limit_ended_says_so_when_it_is_streamed(play: Any, adapter: Adapter) -> None:
    if adapter.module == "keval_claude_code":
        pytest.skip("Claude Code takes what ended early for an error")

    cut, whole = (play(says(ANSWER, cut=end), streams=True) for end in ("length", None))

    assert (ANSWER, True) == (cut.transcript.output, cut.transcript.truncated)
    assert (ANSWER, False) == (whole.transcript.output, whole.transcript.truncated)


def fault(error: TrialError) -> tuple[str, str, bool]:
    return error.stage, error.kind, error.retryable


def timeless(transcript: Transcript) -> Transcript:
    """A transcript without times and what has one, and without the first request, which says that it streams."""
    calls = tuple(attrs.evolve(call, duration=None, at=None) for call in transcript.tool_calls)
    times: dict[str, Any] = {"duration": None, "turn_durations": (), "started": None, "replies": (), "exchanges": ()}
    return attrs.evolve(transcript, tool_calls=calls, request=None, **times)


def pieced(outcome: Outcome) -> list[tuple[str, str]]:
    """What was said, each with the pieces before it joined."""
    found: list[tuple[str, str]] = []
    pieces = ""
    for kind, data in outcome.events:
        if kind == "text_streamed":
            pieces += data["text"]
        elif kind == "said":
            found.append((data["text"], pieces))
            pieces = ""
    return found
