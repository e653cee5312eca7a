"""What a trial tells the model and reports of it, over both of the framework's OpenAI APIs."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval import Sample, ToolCall, Usage
from keval.plugin import Context, TrialError
from keval_gateway import ChatCall, ChatReply, ChatRequest

pytestmark = pytest.mark.parametrize("api", ["chat", "responses"])


def untimed(*calls: ToolCall) -> list[ToolCall]:
    """Return calls without what differs from run to run, and without their model call."""
    return [attrs.evolve(call, duration=None, id=None, model_call=None) for call in calls]


def heard(request: ChatRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages]


def test_a_tools_error_is_data_and_the_model_is_told_as_the_framework_does(play: Any, toolbox: Any, api: str) -> None:
    script = [ChatReply(calls=(ChatCall("fail", {"text": "no such city"}),)), ChatReply("Sorry.")]

    outcome = play(script, toolbox.server(), api=api)

    error = "Error executing tool fail: no such city"
    assert [ToolCall("fail", {"text": "no such city"}, error=error)] == untimed(*outcome.transcript.tool_calls)
    assert outcome.requests[1].messages[-1].text == "Error: Function failed."
    assert outcome.transcript.output == "Sorry."


def test_a_tool_that_does_not_exist_is_an_error_of_that_call(play: Any, toolbox: Any, api: str) -> None:
    script = [ChatReply(calls=(ChatCall("fly", {}), ChatCall("echo", {"text": "hm"}))), ChatReply("Sorry.")]

    outcome = play(script, toolbox.server(), api=api)

    unknown, echo = outcome.transcript.tool_calls
    assert (unknown.name, unknown.result) == ("fly", None)
    assert 'Function "fly" not found' in unknown.error
    assert (echo.result, echo.error) == ("hm", None)


def test_arguments_that_the_framework_refuses_are_an_error_of_that_call(play: Any, toolbox: Any, api: str) -> None:
    script = [ChatReply(calls=(ChatCall("add", {"a": 1}),)), ChatReply("Sorry.")]

    outcome = play(script, toolbox.server(), api=api)

    (call,) = outcome.transcript.tool_calls
    assert call.arguments == {"a": 1}
    assert "Missing required argument(s) for 'add': b" in call.error


def test_an_undeclared_argument_is_reported_as_the_framework_treats_it(play: Any, toolbox: Any, api: str) -> None:
    script = [ChatReply(calls=(ChatCall("echo", {"text": "hm", "loud": True}),)), ChatReply("Done.")]

    outcome = play(script, toolbox.server(), api=api)

    dropped = ToolCall("echo", {"text": "hm"}, result="hm")
    refused = ToolCall(
        "echo", {"text": "hm", "loud": True}, executions=0, error="Unexpected argument(s) for 'echo': loud"
    )
    assert untimed(*outcome.transcript.tool_calls) == [dropped if api == "chat" else refused]


def test_after_three_errors_in_a_row_the_framework_itself_asks_for_an_answer(play: Any, toolbox: Any, api: str) -> None:
    def stubborn(request: ChatRequest) -> ChatReply:
        return ChatReply(calls=(ChatCall("fail", {"text": "no"}),))

    outcome = play(stubborn, toolbox.server(), api=api)

    assert [request.tool_choice for request in outcome.requests] == ["auto", "auto", "auto", "none"]
    assert outcome.transcript.tool_calls[-1].error == "the framework did not run this call"
    assert outcome.transcript.output == "Function invocation limit reached before a final answer could be produced."


def test_a_tool_is_named_as_its_server_names_it(play: Any, toolbox: Any, api: str) -> None:
    def ask(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply("Here.")
        return ChatReply(calls=(ChatCall("where-am-i", {}),))

    outcome = play(ask, toolbox.server(), api=api)

    assert "where-am-i" in [tool.name for tool in outcome.requests[0].tools]
    assert [call.name for call in outcome.transcript.tool_calls] == ["where am i"]
    assert "where am i" in outcome.transcript.tools


def test_usage_is_summed_over_the_model_calls(play: Any, toolbox: Any, api: str) -> None:
    script = [
        ChatReply(calls=(ChatCall("echo", {"text": "hm"}),), usage=Usage(100, 20, 30, 5)),
        ChatReply("Done.", usage=Usage(150, 10, 40, 1)),
    ]

    outcome = play(script, toolbox.server(), api=api)

    assert (Usage(250, 30, 70, 6), 2) == (outcome.transcript.usage, outcome.transcript.model_calls)


def test_the_whole_conversation_is_in_every_request_and_none_is_kept_at_the_service(play: Any, api: str) -> None:
    outcome = play([ChatReply("One."), ChatReply("Two.")], api=api, sample=Sample("s1", "1?", turns=("2?",)))

    assert [message.text for message in outcome.requests[1].messages] == ["1?", "One.", "2?"]
    assert not any(request.raw.get("store") or "previous_response_id" in request.raw for request in outcome.requests)


def test_the_instructions_are_the_whole_system_prompt(play: Any, toolbox: Any, api: str) -> None:
    context = Context(instructions="Be brief.\nUser id: u1")

    outcome = play([ChatReply("Fine.")], toolbox.server(), api=api, context=context)

    assert outcome.requests[0].system == "Be brief.\nUser id: u1"


def test_every_request_carries_the_trials_headers_and_none_of_the_frameworks(play: Any, toolbox: Any, api: str) -> None:
    context = Context(model_headers={"x-keval-trial": "t%201", "x-keval-repetition": "3"})
    script = [ChatReply(calls=(ChatCall("echo", {"text": "hm"}),)), ChatReply("Done.")]

    outcome = play(script, toolbox.server(), api=api, context=context)

    assert [(request.trial, request.repetition) for request in outcome.requests] == [("t 1", 3)] * 2
    assert not [value for request in outcome.requests for value in request.headers.values() if "framework" in value]


def test_the_model_settings_reach_the_request(play: Any, api: str) -> None:
    outcome = play([ChatReply("Fine.")], api=api, temperature=0.25, max_tokens=77, context=Context(seed=41))

    sent = outcome.requests[0].raw
    limit, seed = ("max_completion_tokens", 41) if api == "chat" else ("max_output_tokens", None)
    assert ("claude-sonnet-5-5", 0.25, 77, seed) == (sent["model"], sent["temperature"], sent[limit], sent.get("seed"))


def test_a_model_that_never_answers_fails_the_trial(play: Any, toolbox: Any, api: str) -> None:
    def restless(request: ChatRequest) -> ChatReply:
        return ChatReply(calls=(ChatCall("echo", {"text": "hm"}),))

    outcome = play(restless, toolbox.server(), api=api, max_turns=3)

    assert isinstance(outcome.error, TrialError)
    assert (outcome.error.kind, outcome.error.retryable) == ("max_turns", False)
    assert (len(outcome.requests), outcome.transcript.model_calls, len(outcome.transcript.tool_calls)) == (3, 3, 3)
