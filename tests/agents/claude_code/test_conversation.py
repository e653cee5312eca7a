"""What the model is asked and what is reported of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from keval import Message, Sample, Usage
from keval.plugin import Context, TrialError
from keval_gateway import ChatCall, ChatReply, ChatRequest

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

ADD = ChatCall("mcp__toolbox__add", {"a": 2, "b": 3})
ECHO = ChatCall("mcp__toolbox__echo", {"text": "hm"})


def system_texts(request: ChatRequest) -> list[str]:
    return [block["text"] for block in request.raw["system"]]


def spoken(request: ChatRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages]


def test_the_model_gets_the_question_the_instructions_and_the_tools_and_nothing_else(play: Any, toolbox: Any) -> None:
    context = Context(trial="t 1", instructions="You are terse.", model_headers={"x-keval-trial": "t%201"})

    outcome = play([ChatReply("Fine.")], toolbox.server(), context=context)

    (request,) = outcome.requests
    assert [("user", "How are you?")] == spoken(request)
    assert ["You are a Claude agent, built on Anthropic's Claude Agent SDK.", "You are terse."] == system_texts(request)
    offered = ["add", "die", "echo", "fail", "hang", "picture", "refuse", "where_am_i"]
    assert [f"mcp__toolbox__{name}" for name in offered] == sorted(tool.name for tool in request.tools)
    assert ("claude-sonnet-5-5", "t 1") == (request.model, request.trial)
    assert "Fine." == outcome.transcript.output


def test_without_servers_no_tool_is_offered(play: Any) -> None:
    outcome = play([ChatReply("Fine.")])

    (request,) = outcome.requests
    assert ((), 1) == (request.tools, len(system_texts(request)))
    assert ((), "Fine.") == (outcome.transcript.tools, outcome.transcript.output)


def test_instructions_longer_than_a_command_line_argument_arrive(play: Any) -> None:
    instructions = "Read this. " * 20_000

    outcome = play([ChatReply("Fine.")], context=Context(instructions=instructions))

    assert instructions.strip() == system_texts(outcome.requests[0])[-1].strip()


@pytest.mark.parametrize("question", ["/compact", "Read @toolbox.py"])
def test_a_question_that_looks_like_a_command_is_asked_as_it_is(play: Any, question: str) -> None:
    outcome = play([ChatReply("Fine.")], sample=Sample("s1", question))

    assert [[("user", question)]] == [spoken(request) for request in outcome.requests]


def test_a_trial_is_reported_with_its_calls_texts_tokens_and_times(play: Any, toolbox: Any) -> None:
    script = [
        ChatReply("Let me see.", (ADD, ECHO), Usage(10, 5, 4)),
        ChatReply("Five.", usage=Usage(20, 7, 8)),
    ]

    outcome = play(script, toolbox.server())

    transcript = outcome.transcript
    said = [(message.role, message.text) for message in transcript.messages]
    assert [("user", "How are you?"), ("assistant", "Let me see.")] == said[:2]
    assert ("assistant", "Five.") == said[-1]
    assert ["tool", "tool"] == [role for role, _ in said[2:-1]]
    calls = [(c.name, dict(c.arguments), c.result, c.error, c.model_call, c.turn) for c in transcript.tool_calls]
    expected = [
        ("add", {"a": 2, "b": 3}, '{"result":5}', None, 1, 0),
        ("echo", {"text": "hm"}, '{"result":"hm"}', None, 1, 0),
    ]
    assert expected == calls
    assert all(call.duration is not None and call.duration > 0 for call in transcript.tool_calls)
    assert (Usage(30, 12, 12), 2) == (transcript.usage, transcript.model_calls)
    assert len(outcome.requests) == 2
    assert transcript.tools == tuple(sorted(toolbox.server().tools))
    assert transcript.duration is not None
    assert 0 < transcript.duration < 30


def test_earlier_messages_come_before_the_question(play: Any) -> None:
    history = (
        Message("user", "I am Ada."),
        Message("assistant", "Hello Ada!"),
        Message("user", "I like tea."),
        Message("assistant", "Noted."),
    )

    outcome = play(
        [ChatReply("Ada."), ChatReply("Tea.")], sample=Sample("s1", "Who am I?", history=history, turns=("And?",))
    )

    earlier = [(message.role, message.text) for message in history]
    assert [*earlier, ("user", "Who am I?")] == spoken(outcome.requests[0])
    assert [*earlier, ("user", "Who am I?"), ("assistant", "Ada."), ("user", "And?")] == spoken(outcome.requests[1])
    assert [0, 0, 1, 1] == [message.turn for message in outcome.transcript.messages]


def test_earlier_messages_that_claude_code_cannot_take_fail_the_trial(play: Any) -> None:
    outcome = play([], sample=Sample("s1", "Well?", history=(Message("tool", "42"),)))

    assert isinstance(outcome.error, TrialError)
    assert ("history_unsupported", False, []) == (outcome.error.kind, outcome.error.retryable, outcome.requests)


def test_a_trial_knows_nothing_of_the_one_before(runner: Any, staged: Any) -> None:
    async def scenario() -> list[list[tuple[str, str]]]:
        async with staged([ChatReply("One."), ChatReply("Two.")]) as scene:
            await scene.agent.run(Sample("s1", "First?"), Context())
            await scene.agent.run(Sample("s2", "Second?"), Context())
            return [spoken(request) for request in scene.requests]

    assert [[("user", "First?")], [("user", "Second?")]] == runner.run(scenario())
