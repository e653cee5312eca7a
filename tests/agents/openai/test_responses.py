"""What goes over the Responses API, and what is made of what comes."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import JSONResponse

from keval import Message, Sample, Usage
from keval.plugin import Context, ModelError, TrialError
from keval_clients import openai_client
from keval_mcp.loop import Result, Tool
from keval_openai import OpenAI
from keval_openai.responses import ResponsesChat

INCLUDE = ["reasoning.encrypted_content"]
TWO_TURNS = Sample("s1", "Fly!", turns=("Never mind.",))


def reasoning(content: str | None) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": content}


def test_the_request_has_the_conversation_and_the_options_and_is_not_kept(play: Any, response: Any) -> None:
    context = Context("t1", "Be brief.", model_headers={"x-keval-trial": "t1"}, seed=7)
    history = (Message("user", "I am Ada."), Message("assistant", "Hello, Ada."))
    options = {"api": "responses", "temperature": 0.5, "max_tokens": 99}

    played = play(
        OpenAI, response("Ada."), sample=Sample("s1", "Who am I?", history=history), context=context, **options
    )

    (asked,) = played.asked
    assert (asked.path, asked.headers["x-keval-trial"]) == ("/responses", "t1")
    assert asked.body == {
        "model": "the-model",
        "store": False,
        "include": INCLUDE,
        "temperature": 0.5,
        "max_output_tokens": 99,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "I am Ada."},
            {"role": "assistant", "content": "Hello, Ada."},
            {"role": "user", "content": "Who am I?"},
        ],
    }


def test_the_output_goes_back_as_it_came(play: Any, response: Any, called: Any) -> None:
    calling = response(reasoning("gAAA"), called("c1", "fly", {"to": "Rome"}))
    answer = response("I cannot.")

    played = play(OpenAI, calling, answer, response("Bye."), sample=TWO_TURNS, api="responses")

    assert played.bodies[2]["input"] == [
        {"role": "user", "content": "Fly!"},
        *calling["output"],
        {"type": "function_call_output", "call_id": "c1", "output": "Error: there is no tool named 'fly'"},
        *answer["output"],
        {"role": "user", "content": "Never mind."},
    ]
    assert played.transcript.output == "Bye."


def test_reasoning_that_came_open_is_left_out_with_all_ids(play: Any, response: Any, called: Any) -> None:
    call = called("c1", "fly", {})

    played = play(OpenAI, response(reasoning(None), call), response("No."), api="responses")

    del call["id"]
    assert played.bodies[1]["input"][1] == call


def test_a_model_that_does_not_reason_is_asked_again_without_its_reasoning(
    runner: Any, scripted: Any, response: Any
) -> None:
    refusal = {"message": "Not supported with this model.", "type": "invalid_request_error", "param": "include"}

    async def scenario() -> list[Any]:
        async with scripted(JSONResponse({"error": refusal}, 400), response("One."), response("Two.")) as endpoint:
            agent = OpenAI(endpoint.model, api="responses")
            outputs = [(await agent.run(Sample("s1", "?"), Context())).output for _ in range(2)]
            await agent.aclose()
            return [outputs, [asked.body.get("include") for asked in endpoint.asked]]

    assert runner.run(scenario()) == [["One.", "Two."], [INCLUDE, None, None]]


def test_another_refusal_is_not_asked_again(play: Any) -> None:
    refusal = JSONResponse({"error": {"message": "too hot", "param": "temperature"}}, 400)

    played = play(OpenAI, refusal, api="responses")

    assert isinstance(played.error, ModelError)
    assert (played.error.kind, len(played.asked)) == ("http_400", 1)


def test_tools_are_offered_loosely_and_results_told_in_order(
    runner: Any, scripted: Any, response: Any, called: Any, add: Tool
) -> None:
    calls = response(called("c1", "sums_add", {"a": 1}), called("c2", "sums_add", "{"))

    async def scenario() -> tuple[list[Any], list[Any]]:
        async with scripted(calls, response("Done.")) as endpoint:
            client = openai_client(endpoint.base, endpoint.model.endpoint)
            options = {"model": "m"}
            chat = ResponsesChat.start(client, Context(), [add], options)
            chat.say("Add up.")
            reply = await chat.ask()
            chat.tell([Result("c1", ("1",), False), Result("c2", ("what?",), True)])
            await chat.ask()
            await client.aclose()
        return list(reply.calls), [request.body for request in endpoint.asked]

    found, (first, second) = runner.run(scenario())

    assert [(call.id, call.arguments, call.problem) for call in found] == [
        ("c1", {"a": 1}, ""),
        ("c2", {}, "the arguments are not a JSON object: {"),
    ]
    offered = {"name": "sums_add", "description": "Add up.", "parameters": add.input_schema, "strict": False}
    assert first["tools"] == [{"type": "function", **offered}]
    assert second["input"][-2:] == [
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": "Error: what?"},
    ]


def test_tokens_are_reported(play: Any, response: Any) -> None:
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
    }

    played = play(OpenAI, response("Fine.", usage=usage), api="responses")

    assert played.transcript.usage == Usage(10, 5, 4, 3)


def test_an_answer_that_was_cut_off_and_a_refusal_stay_answers(play: Any, response: Any) -> None:
    refusal = {"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "I will not."}]}

    played = play(OpenAI, response("It is", status="incomplete"), response(refusal), sample=TWO_TURNS, api="responses")

    assert [message.text for message in played.transcript.messages] == ["Fly!", "It is", "Never mind.", "I will not."]


def test_a_call_that_was_cut_off_is_not_made(play: Any, response: Any, called: Any) -> None:
    calls = [called("c1", "swim", ""), called("c2", "fly", "")]
    cut = response(*calls, status="incomplete", incomplete_details={"reason": "max_output_tokens"})

    played = play(OpenAI, cut, response("Sorry."), api="responses")

    assert [(call.name, call.error, call.executions) for call in played.transcript.tool_calls] == [
        ("swim", "there is no tool named 'swim'", 0),
        ("fly", "the call was cut off by the limit of output tokens", 0),
    ]


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("rate_limit_exceeded", "rate_limit", True),
        ("server_error", "http_500", True),
        ("vector_store_timeout", "http_504", True),
        ("invalid_prompt", "http_400", False),
        ("bio_policy", "http_400", False),
    ],
)
def test_a_failure_inside_a_reply_is_retried_where_it_may_pass(
    play: Any, response: Any, code: str, kind: str, retryable: bool
) -> None:
    failed = response(status="failed", error={"code": code, "message": "the model is tired"})

    played = play(OpenAI, failed, api="responses")

    error = played.error
    assert isinstance(error, TrialError)
    assert (error.stage, error.kind, error.retryable) == ("model", kind, retryable)
    assert str(error) == f"the model failed: {code}: the model is tired"


@pytest.mark.parametrize("status", ["failed", "cancelled", "in_progress"])
def test_a_reply_that_was_not_finished_is_no_answer(play: Any, response: Any, status: str) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5}

    played = play(OpenAI, response("It is", usage=usage, status=status, error=None), api="responses")

    assert isinstance(played.error, TrialError)
    assert (played.error.stage, played.error.kind, played.error.retryable) == ("model", "http_500", True)
    assert str(played.error) == f"the model failed: its status is {status}"
    assert (played.transcript.output, played.transcript.usage) == ("", Usage(10, 5))
