"""What goes over the Chat Completions API, and what is made of what comes."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from starlette.responses import Response

from keval import Message, Sample, Usage
from keval.plugin import Context
from keval_clients import openai_client
from keval_mcp.loop import Result, Tool
from keval_openai import OpenAI
from keval_openai.completions import CompletionsChat

TWO_TURNS = Sample("s1", "Fly!", turns=("Never mind.",))
HISTORY = (Message("user", "I am Ada."), Message("assistant", "Hello, Ada."))


def test_the_request_has_the_conversation_and_the_options(play: Any, completion: Any) -> None:
    context = Context("t1", "Be brief.", model_headers={"x-keval-trial": "t1"}, seed=7)
    sample = Sample("s1", "Who am I?", history=HISTORY)

    played = play(OpenAI, completion("Ada."), sample=sample, context=context, temperature=0.5, max_tokens=99)

    (asked,) = played.asked
    assert asked.path == "/chat/completions"
    assert (asked.headers["authorization"], asked.headers["x-keval-trial"]) == ("Bearer key", "t1")
    assert asked.body == {
        "model": "the-model",
        "seed": 7,
        "temperature": 0.5,
        "max_completion_tokens": 99,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "I am Ada."},
            {"role": "assistant", "content": "Hello, Ada."},
            {"role": "user", "content": "Who am I?"},
        ],
    }


def test_without_options_and_instructions_the_request_has_none(play: Any, completion: Any) -> None:
    played = play(OpenAI, completion("Fine."))

    expected = {"model": "the-model", "seed": 0, "messages": [{"role": "user", "content": "How are you?"}]}
    assert played.bodies == [expected]


def test_a_message_with_calls_goes_back_as_it_came_and_an_answer_as_its_text(play: Any, completion: Any) -> None:
    calling = completion("Let me see.", ("c1", "fly", {"to": "Rome"}), reasoning_content="Wings?")
    answers = [calling, completion("I cannot.", reasoning_content="No wings."), completion("Bye.")]

    played = play(OpenAI, *answers, sample=Sample("s1", "Fly!", turns=("Never mind.",)))

    assert played.bodies[2]["messages"] == [
        {"role": "user", "content": "Fly!"},
        calling["choices"][0]["message"],
        {"role": "tool", "tool_call_id": "c1", "content": "Error: there is no tool named 'fly'"},
        {"role": "assistant", "content": "I cannot."},
        {"role": "user", "content": "Never mind."},
    ]
    said = [(message.role, message.text, message.turn) for message in played.transcript.messages]
    assert said[-2:] == [("user", "Never mind.", 1), ("assistant", "Bye.", 1)]


def test_tools_are_offered_under_their_aliases_and_results_told_in_order(
    runner: Any, scripted: Any, completion: Any, add: Tool
) -> None:
    now = attrs.evolve(add, name="now", alias="now", description="", input_schema={"type": "object"})
    asked = completion(None, ("c1", "sums_add", {"a": 1}), ("c2", "now", ""))

    async def scenario() -> tuple[list[Any], list[Any]]:
        async with scripted(asked, completion("Done.")) as endpoint:
            client = openai_client(endpoint.base, endpoint.model.endpoint)
            chat = CompletionsChat.start(client, Context(), [add, now], {"model": "m"})
            chat.say("Add up.")
            reply = await chat.ask()
            chat.tell([Result("c1", ("1",), False), Result("c2", ("no clock",), True)])
            await chat.ask()
            await client.aclose()
        return list(reply.calls), [request.body for request in endpoint.asked]

    calls, (first, second) = runner.run(scenario())

    assert [(call.id, call.name, call.arguments, call.problem) for call in calls] == [
        ("c1", "sums_add", {"a": 1}, ""),
        ("c2", "now", {}, ""),
    ]
    parameters = {"type": "object", "properties": {"a": {"type": "number"}}}
    nothing = {"type": "object", "properties": {}}
    assert [(tool["type"], tool["function"]) for tool in first["tools"]] == [
        ("function", {"name": "sums_add", "description": "Add up.", "parameters": parameters}),
        ("function", {"name": "now", "description": "", "parameters": nothing}),
    ]
    assert second["messages"][-2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no clock"},
    ]


def test_the_tokens_of_all_model_calls_are_added_up(play: Any, completion: Any) -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }

    played = play(OpenAI, completion(None, ("c1", "fly", {}), usage=usage), completion("No.", usage=usage))

    assert (played.transcript.model_calls, played.transcript.usage) == (2, Usage(20, 10, 8, 6))


@pytest.mark.parametrize(
    ("usage", "expected"), [(None, Usage()), ("much", Usage()), ({"prompt_tokens": 10}, Usage(10))]
)
def test_tokens_that_are_not_reported_cost_no_answer(play: Any, completion: Any, usage: Any, expected: Usage) -> None:
    played = play(OpenAI, completion("Fine.", usage=usage))

    assert (played.transcript.output, played.transcript.usage) == ("Fine.", expected)


def test_a_seed_that_an_endpoint_refuses_can_be_left_out(play: Any, completion: Any) -> None:
    played = play(OpenAI, completion("Fine."), seed=False)

    assert played.bodies == [{"model": "the-model", "messages": [{"role": "user", "content": "How are you?"}]}]


@pytest.mark.parametrize(
    "written",
    [
        "[1, 2]",
        '{"to": "Ro',
        "null",
        '{"n": NaN}',
        '{"n": -Infinity}',
        '{"n": 1e999}',
        '{"n": ' + "1" * 5000 + "}",
        "[" * 100_000,
    ],
    ids=["a list", "half an object", "null", "NaN", "-Infinity", "1e999", "many digits", "too deep"],
)
def test_arguments_that_are_no_object_are_told_to_the_model(play: Any, completion: Any, written: str) -> None:
    played = play(OpenAI, completion(None, ("c1", "fly", written)), completion("Sorry."))

    quoted = written if len(written) <= 1000 else f"{written[:1000]}…"
    problem = f"the arguments are not a JSON object: {quoted}"
    (call,) = played.transcript.tool_calls
    assert (call.name, call.arguments, call.error, call.executions) == ("fly", {}, problem, 0)
    assert played.bodies[1]["messages"][-1]["content"] == f"Error: {problem}"
    assert played.transcript.output == "Sorry."


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_that_was_cut_off_and_a_refusal_stay_answers(play: Any, completion: Any, finish: str) -> None:
    answers = [completion("It is", finish=finish), completion(None, refusal="I will not.")]

    played = play(OpenAI, *answers, sample=Sample("s1", "?", turns=("Go on.",)))

    assert [message.text for message in played.transcript.messages] == ["?", "It is", "Go on.", "I will not."]
    assert played.error is None


@pytest.mark.parametrize("arguments", ["", '{"to": "Ro'])
def test_a_call_that_was_cut_off_is_not_made(play: Any, completion: Any, arguments: str) -> None:
    cut = completion(None, ("c1", "swim", ""), ("c2", "fly", arguments), finish="length")

    played = play(OpenAI, cut, completion("Sorry."))

    assert [(call.name, call.error, call.executions) for call in played.transcript.tool_calls] == [
        ("swim", "there is no tool named 'swim'", 0),
        ("fly", "the call was cut off by the limit of output tokens", 0),
    ]


def test_a_lone_surrogate_is_replaced(play: Any, completion: Any) -> None:
    calling = completion("Up \ud83d", ("c1", "fly", r'{"to": "\ud83d \ud83d\ude80"}'))
    answers = [Response(json.dumps(answer)) for answer in (calling, completion("Down \ude00"), completion("Bye."))]

    played = play(OpenAI, *answers, sample=TWO_TURNS)

    (call,) = played.transcript.tool_calls
    assert (played.error, call.arguments) == (None, {"to": "? 🚀"})
    assert [message["content"] for message in played.bodies[2]["messages"] if message["role"] == "assistant"] == [
        "Up ?",
        "Down ?",
    ]


@pytest.mark.parametrize("ids", [("", ""), (None, None), ("c", "c")])
def test_calls_without_an_id_of_their_own_are_told_apart(play: Any, completion: Any, ids: Any) -> None:
    calling = completion(None, (ids[0], "fly", {}), (ids[1], "swim", {}))

    played = play(OpenAI, calling, completion("I can do neither."))

    assert [(call.name, call.error) for call in played.transcript.tool_calls] == [
        ("fly", "there is no tool named 'fly'"),
        ("swim", "there is no tool named 'swim'"),
    ]
