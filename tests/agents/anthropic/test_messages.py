"""What goes over the Messages API, and what is made of what comes."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from starlette.responses import Response

from keval import Message, Sample, Usage
from keval.plugin import Context
from keval_anthropic import Anthropic
from keval_anthropic.messages import MessagesChat
from keval_clients import anthropic_client
from keval_mcp.loop import Result, Tool

TWO_TURNS = Sample("s1", "Fly!", turns=("Never mind.",))


def test_the_request_has_the_conversation_and_the_options(play: Any, message: Any) -> None:
    context = Context("t1", "Be brief.", model_headers={"x-keval-trial": "t1"}, seed=7)
    history = (Message("user", "I am Ada."), Message("assistant", "Hello, Ada."))
    sample = Sample("s1", "Who am I?", history=history)

    played = play(Anthropic, message("Ada."), sample=sample, context=context, temperature=0.5, max_tokens=99)

    (asked,) = played.asked
    assert asked.path == "/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["x-keval-trial"]) == ("key", "t1")
    assert asked.body == {
        "model": "the-model",
        "max_tokens": 99,
        "temperature": 0.5,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "I am Ada."},
            {"role": "assistant", "content": "Hello, Ada."},
            {"role": "user", "content": "Who am I?"},
        ],
    }


def test_without_options_and_instructions_the_request_has_none(play: Any, message: Any) -> None:
    played = play(Anthropic, message("Fine."))

    asked = [{"role": "user", "content": "How are you?"}]
    assert played.bodies == [{"model": "the-model", "max_tokens": 4096, "messages": asked}]


def test_what_the_model_thought_goes_back_as_it_came(play: Any, message: Any, use: Any) -> None:
    thought = {"type": "thinking", "thinking": "Wings?", "signature": "EqQ"}
    hidden = {"type": "redacted_thinking", "data": "EmwK"}
    calling = message(thought, hidden, "Let me see.", use("t1", "fly", to="Rome"), stop_reason="tool_use")

    played = play(Anthropic, calling, message("I cannot."), message("Bye."), sample=TWO_TURNS)

    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": "there is no tool named 'fly'",
        "is_error": True,
    }
    assert played.bodies[2]["messages"] == [
        {"role": "user", "content": "Fly!"},
        {"role": "assistant", "content": calling["content"]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "I cannot."}]},
        {"role": "user", "content": "Never mind."},
    ]
    assert [said.text for said in played.transcript.messages if said.role == "assistant"] == [
        "Let me see.",
        "I cannot.",
        "Bye.",
    ]


def test_what_the_api_would_not_take_back_is_left_out(play: Any, message: Any, use: Any) -> None:
    answers = [message("\n", use("t1", "fly")), message(stop_reason="pause_turn"), message("Bye.")]

    played = play(Anthropic, *answers)

    told = played.bodies[2]["messages"]
    assert told[1] == {"role": "assistant", "content": [use("t1", "fly")]}
    assert [message["role"] for message in told] == ["user", "assistant", "user"]
    assert played.transcript.output == "Bye."


def test_tools_are_offered_under_their_aliases_and_results_told_in_order(
    runner: Any, scripted: Any, message: Any, use: Any
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}}
    add = Tool("sums", "sums/add", "sums_add", "Add up.", schema)
    now = attrs.evolve(add, name="now", alias="now", input_schema={})
    uses = [use("t1", "sums_add", a=1), use("t2", "now"), use("t3", "now"), use("t4", "now")]
    asked = message(*uses, stop_reason="tool_use")
    results = [
        Result("t1", ("1",), False),
        Result("t2", ("no clock",), True),
        Result("t3", ("",), False),
        Result("t4", ("",), True),
    ]

    async def scenario() -> tuple[list[Any], list[Any]]:
        async with scripted(asked, message("Done.")) as endpoint:
            client = anthropic_client(endpoint.base, endpoint.model.endpoint)
            chat = MessagesChat.start(client, Context(), [add, now], {"model": "m"})
            chat.say("Add up.")
            reply = await chat.ask()
            chat.tell(results)
            await chat.ask()
            await client.aclose()
        return list(reply.calls), [request.body for request in endpoint.asked]

    calls, (first, second) = runner.run(scenario())

    assert [(call.id, call.name, call.arguments, call.problem) for call in calls] == [
        ("t1", "sums_add", {"a": 1}, ""),
        ("t2", "now", {}, ""),
        ("t3", "now", {}, ""),
        ("t4", "now", {}, ""),
    ]
    assert first["tools"] == [
        {"name": "sums_add", "description": "Add up.", "input_schema": schema},
        {"name": "now", "description": "Add up.", "input_schema": {"type": "object"}},
    ]
    assert second["messages"][-1] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "1", "is_error": False},
            {"type": "tool_result", "tool_use_id": "t2", "content": "no clock", "is_error": True},
            {"type": "tool_result", "tool_use_id": "t3", "is_error": False},
            {
                "type": "tool_result",
                "tool_use_id": "t4",
                "content": "the tool failed and said nothing",
                "is_error": True,
            },
        ],
    }


def test_cached_tokens_are_among_the_input_tokens(play: Any, message: Any, use: Any) -> None:
    details = {"thinking_tokens": 2}
    first = message(use("t1", "fly"), cache_creation_input_tokens=100, output_tokens_details=details)
    second = message("No.", cache_read_input_tokens=100, output_tokens_details=details)

    played = play(Anthropic, first, second)

    assert (played.transcript.model_calls, played.transcript.usage) == (2, Usage(220, 10, 100, 4))


@pytest.mark.parametrize(
    ("usage", "expected"), [(None, Usage()), ("much", Usage()), ({"input_tokens": 10}, Usage(10, None, 0))]
)
def test_tokens_that_are_not_reported_cost_no_answer(play: Any, message: Any, usage: Any, expected: Usage) -> None:
    played = play(Anthropic, {**message("Fine."), "usage": usage})

    assert (played.transcript.output, played.transcript.usage) == ("Fine.", expected)


@pytest.mark.parametrize("stop_reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_an_answer_that_ended_early_stays_an_answer(play: Any, message: Any, stop_reason: str) -> None:
    played = play(Anthropic, message("It is", stop_reason=stop_reason))

    assert (played.transcript.output, played.error, len(played.asked)) == ("It is", None, 1)


def test_a_paused_turn_goes_on(play: Any, message: Any) -> None:
    played = play(Anthropic, message("Wait.", stop_reason="pause_turn"), message("It is sunny."))

    assert played.bodies[1]["messages"][1:] == [{"role": "assistant", "content": [{"type": "text", "text": "Wait."}]}]
    assert (played.transcript.output, played.transcript.model_calls) == ("It is sunny.", 2)


@pytest.mark.parametrize(
    ("stop_reason", "by"),
    [
        ("max_tokens", "the limit of output tokens"),
        ("refusal", "a refusal by the model or by a filter at its endpoint"),
    ],
)
def test_a_call_that_was_cut_off_is_not_made(play: Any, message: Any, use: Any, stop_reason: str, by: str) -> None:
    cut = message(use("t1", "swim"), use("t2", "fly", to="Ro"), stop_reason=stop_reason)

    played = play(Anthropic, cut, message("Sorry."))

    assert [(call.name, call.error, call.executions) for call in played.transcript.tool_calls] == [
        ("swim", "there is no tool named 'swim'", 0),
        ("fly", f"the call was cut off by {by}", 0),
    ]


def test_arguments_that_are_no_object_are_told_to_the_model(play: Any, message: Any, use: Any) -> None:
    played = play(Anthropic, message({**use("t1", "fly"), "input": ["Rome"]}), message("Sorry."))

    (call,) = played.transcript.tool_calls
    assert (call.arguments, call.error) == ({}, "the arguments are not a JSON object: ['Rome']")


def test_a_lone_surrogate_is_replaced(play: Any, message: Any, use: Any) -> None:
    calling = message("Up \ud83d", use("t1", "fly", to="\ud83d 🚀"))
    answers = [Response(json.dumps(answer)) for answer in (calling, message("Down \ude00"), message("Bye."))]

    played = play(Anthropic, *answers, sample=TWO_TURNS)

    (call,) = played.transcript.tool_calls
    assert (played.error, call.arguments) == (None, {"to": "? 🚀"})
    assert [said.text for said in played.transcript.messages if said.role == "assistant"] == ["Up ?", "Down ?", "Bye."]
