"""The tool loop, with a chat that says what it is told to and real servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from keval import Message, Sample, ToolCall, Transcript, Usage
from keval.plugin import Context, ServerLostError, TrialError
from keval_mcp.loop import Call, Reply, Result, Tool, open_conversation
from keval_mcp.tool_results import Media
from tests.contexts import started

QUESTION = Sample("s1", "How are you?")
ECHO = Call("c1", "echo", {"text": "hm"})


def said(text: str) -> tuple[Message, ...]:
    return (Message("assistant", text),)


@attrs.define
class ScriptedChat:
    """Gives these replies, and keeps what it is told."""

    replies: list[Reply | TrialError]
    offered: list[str] = attrs.field(factory=list)
    told: list[str | list[Result]] = attrs.field(factory=list)

    def start(self, tools: Sequence[Tool]) -> ScriptedChat:
        self.offered = [tool.alias for tool in tools]
        return self

    def offer(self, tools: Sequence[Tool]) -> None:
        self.offered = [tool.alias for tool in tools]

    def say(self, text: str) -> None:
        self.told.append(text)

    async def ask(self) -> Reply:
        reply = self.replies.pop(0)
        if isinstance(reply, TrialError):
            raise reply
        return reply

    def takes(self, media: Media, *, error: bool) -> bool:
        return False

    def tell(self, results: Sequence[Result]) -> None:
        self.told.append(list(results))


@attrs.frozen
class Held:
    """What came of a conversation."""

    transcript: Transcript
    chat: ScriptedChat
    error: TrialError | None


@pytest.fixture
def hold(sample: Sample) -> Callable[..., Held]:
    """Hold a conversation: `hold(reply, ..., provider=..., sample=..., max_turns=...)`."""

    async def scenario(chat: ScriptedChat, asked: Sample, context: Context, max_turns: int) -> Held:
        error = None
        try:
            async with open_conversation(context, chat.start, max_turns=max_turns) as conversation:
                for text in asked.asked:
                    await conversation.ask(text)
        except TrialError as raised:
            error = raised
        return Held(context.builder.transcript(), chat, error)

    async def served(provider: Any, chat: ScriptedChat, asked: Sample, max_turns: int) -> Held:
        if provider is None:
            return await scenario(chat, asked, Context(), max_turns)
        async with started(provider, "tools") as source, source.open(sample, "t") as context:
            return await scenario(chat, asked, context, max_turns)

    def run(*replies: Reply | TrialError, provider: Any = None, sample: Sample = QUESTION, max_turns: int = 20) -> Held:
        return asyncio.run(asyncio.wait_for(served(provider, ScriptedChat([*replies]), sample, max_turns), 30))

    return run


def test_every_message_of_the_user_is_answered_in_turn(hold: Any) -> None:
    asked = attrs.evolve(QUESTION, turns=("And now?",))

    held = hold(Reply(said("Well.")), Reply(said("Better.")), sample=asked)

    heard = [(message.role, message.text, message.turn) for message in held.transcript.messages]
    assert heard == [
        ("user", "How are you?", 0),
        ("assistant", "Well.", 0),
        ("user", "And now?", 1),
        ("assistant", "Better.", 1),
    ]
    assert (held.chat.offered, held.chat.told) == ([], ["How are you?", "And now?"])
    assert (held.transcript.tools, len(held.transcript.turn_durations)) == ((), 2)


def test_tools_are_run_and_their_results_told_until_there_is_an_answer(hold: Any, lasting: Any) -> None:
    usage = Usage(10, 5)
    replies = (
        Reply(said("Let me see."), (ECHO,), usage),
        Reply((), (attrs.evolve(ECHO, id="c2"),), usage),
        Reply(said("Hm!")),
    )

    held = hold(*replies, provider=lasting())

    told = [Result("c1", ("hm",), False)], [Result("c2", ("hm",), False)]
    assert held.chat.told == ["How are you?", *told]
    calls = [(call.name, call.result, call.id, call.model_call) for call in held.transcript.tool_calls]
    assert calls == [("echo", "hm", "c1", 1), ("echo", "hm", "c2", 2)]
    assert (held.transcript.model_calls, held.transcript.usage, held.transcript.output) == (3, Usage(), "Hm!")
    assert set(held.transcript.tools) == set(held.chat.offered)


@pytest.mark.parametrize("tap", [True, False])
def test_calls_of_one_reply_run_at_once_and_are_told_in_their_order(hold: Any, server: Any, tap: bool) -> None:
    calls = (Call("c1", "wait_here", {}), Call("c2", "wait_here_2", {}))

    held = hold(Reply(calls=calls), Reply(said("Done.")), provider=server("meeting", tap=tap))

    assert held.chat.told[1] == [Result("c1", ("met",), False), Result("c2", ("came",), False)]
    told = [(call.name, call.result) for call in held.transcript.tool_calls]
    assert told == [("wait here", "met"), ("wait/here", "came")]


def test_an_error_of_a_tool_is_told_and_the_trial_goes_on(hold: Any, lasting: Any) -> None:
    held = hold(Reply(calls=(Call("c1", "fail", {}), ECHO)), Reply(said("It failed.")), provider=lasting())

    problem = "Error executing tool fail: the tool has failed"
    assert held.chat.told[1] == [Result("c1", (problem,), True), Result("c1", ("hm",), False)]
    assert [(call.result, call.error) for call in held.transcript.tool_calls] == [(None, problem), ("hm", None)]
    assert (held.transcript.output, held.error) == ("It failed.", None)


def test_a_call_that_cannot_be_made_reaches_no_server(hold: Any, lasting: Any) -> None:
    calls = (Call("c1", "fly", {"to": "Rome"}), attrs.evolve(ECHO, id="c2", problem="no JSON"))

    held = hold(Reply(calls=calls), Reply(said("Sorry.")), provider=lasting())

    unknown = "there is no tool named 'fly'"
    assert held.chat.told[1] == [Result("c1", (unknown,), True), Result("c2", ("no JSON",), True)]
    assert [(call.name, call.error, call.executions) for call in held.transcript.tool_calls] == [
        ("fly", unknown, 0),
        ("echo", "no JSON", 0),
    ]


@pytest.mark.parametrize(
    "results", [{"wait_here": "met", "wait_here_2": "came"}, {"wait_here_2": "came", "wait_here": "met"}]
)
@pytest.mark.parametrize("id", ["c", ""])
def test_calls_without_an_id_of_their_own_keep_their_results(hold: Any, server: Any, id: str, results: Any) -> None:
    """Whichever is answered first: in one of the two orders that is the call that was made last."""
    calls = tuple(Call(id, name, {}) for name in results)

    held = hold(Reply(calls=calls), Reply(said("Done.")), provider=server("meeting", tap=False))

    assert [call.result for call in held.transcript.tool_calls] == [*results.values()]
    assert [result.id for result in held.chat.told[1]] == [id, id]


@pytest.mark.parametrize("tap", [True, False])
def test_a_lost_server_ends_the_trial_and_the_other_calls(hold: Any, bare: Any, tap: bool) -> None:
    calls = (Call("c1", "hang", {}), Call("c2", "die", {}))

    held = hold(Reply(calls=calls), Reply(said("It is sunny.")), provider=bare(tap=tap))

    assert isinstance(held.error, ServerLostError)
    assert "dying now" in str(held.error)
    assert (len(held.chat.replies), held.transcript.output) == (1, "")
    asked = [call.name for call in held.transcript.tool_calls]
    assert (asked, any(call.error for call in held.transcript.tool_calls)) == (["hang", "die"], True)


def test_a_paused_reply_is_gone_on_with(hold: Any) -> None:
    held = hold(Reply(said("Wait."), paused=True), Reply(said("Well.")))

    assert (held.transcript.output, held.transcript.model_calls, held.chat.told) == ("Well.", 2, ["How are you?"])


def test_max_turns_bounds_the_model_calls_of_each_message(hold: Any) -> None:
    asked = attrs.evolve(QUESTION, turns=("And now?",))
    calling = Reply(calls=(Call("c1", "fly", {}),))

    enough = hold(calling, Reply(said("Well.")), calling, Reply(said("Better.")), sample=asked, max_turns=2)
    too_few = hold(calling, calling, Reply(said("Well.")), max_turns=2)

    assert (enough.error, enough.transcript.output) == (None, "Better.")
    assert isinstance(too_few.error, TrialError)
    assert (too_few.error.kind, too_few.transcript.model_calls) == ("max_turns", 2)
    assert "raise max_turns" in str(too_few.error)


def test_a_model_that_fails_ends_the_trial_which_keeps_what_it_had(hold: Any) -> None:
    failure = TrialError("out of order", stage="model")

    held = hold(Reply(said("Let me see."), (Call("c1", "fly", {}),)), failure)

    assert held.error is failure
    call = ToolCall("fly", error="there is no tool named 'fly'", id="c1", executions=0, model_call=1)
    (found,) = held.transcript.tool_calls
    assert attrs.evolve(found, duration=None) == call
