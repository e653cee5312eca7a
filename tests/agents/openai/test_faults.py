"""How a failing model shows: as an error, never as an answer."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import JSONResponse

from keval import Usage
from keval.plugin import TrialError
from keval_openai import OpenAI

NOTHING = "ended the reply before it said anything"
REWORD = "look at what it was asked and what the tools returned, or take another model"

each_api = pytest.mark.parametrize("api", ["chat", "responses"])


@each_api
@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"error": {"message": "overloaded"}}),
        JSONResponse({"choices": [], "output": None}),
        JSONResponse({"choices": [{"message": None}], "output": [{"type": "message"}]}),
        JSONResponse({"choices": [{"message": {"tool_calls": [{"id": "c"}]}}], "output": [{"type": "function_call"}]}),
        JSONResponse({"choices": [{"message": {"content": ["Hi"]}}], "output": [{}]}),
    ],
)
def test_a_reply_that_is_none_is_no_answer(play: Any, api: str, answer: Any) -> None:
    played = play(OpenAI, answer, api=api)

    error = played.error
    assert isinstance(error, TrialError)
    assert (error.stage, error.kind, error.retryable) == ("model", "bad_reply", True)
    assert "that is no reply: " in str(error)
    assert played.transcript.output == ""


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ("length", ("cut_off", f"the limit of output tokens {NOTHING}; raise max_tokens")),
        ("content_filter", ("refused", f"a refusal by the model or by a filter at its endpoint {NOTHING}; {REWORD}")),
    ],
)
@pytest.mark.parametrize("text", [None, " \n"])
def test_a_completion_that_ended_early_with_nothing_in_it_is_no_answer(
    play: Any, completion: Any, text: str | None, ended: str, expected: Any
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4096}

    played = play(OpenAI, completion(text, finish=ended, usage=usage))

    assert isinstance(played.error, TrialError)
    assert (played.error.kind, str(played.error)) == expected
    assert (played.error.stage, played.error.retryable) == ("model", False)
    assert (played.transcript.model_calls, played.transcript.usage) == (1, Usage(10, 4096))


@pytest.mark.parametrize(
    ("details", "kind", "told"),
    [
        ({"reason": "max_output_tokens"}, "cut_off", "raise max_tokens"),
        ({"reason": "content_filter"}, "refused", "look at what it was asked"),
        (None, "cut_off", "it gives no known reason"),
    ],
)
def test_a_response_that_ended_early_with_nothing_in_it_is_no_answer(
    play: Any, response: Any, details: Any, kind: str, told: str
) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    usage = {"input_tokens": 10, "output_tokens": 4096}

    played = play(
        OpenAI, response(thought, usage=usage, status="incomplete", incomplete_details=details), api="responses"
    )

    assert isinstance(played.error, TrialError)
    assert (played.error.stage, played.error.kind, played.error.retryable) == ("model", kind, False)
    assert told in str(played.error)
    assert (played.transcript.model_calls, played.transcript.usage) == (1, Usage(10, 4096))


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ({"code": 502, "message": "Provider disconnected"}, "http_502", "the model failed: 502: Provider disconnected"),
        (None, "http_500", "the model failed: no reason given"),
    ],
)
def test_a_completion_that_its_provider_broke_off_is_no_answer(
    play: Any, completion: Any, error: Any, kind: str, message: str
) -> None:
    broken = completion("It is", ("c1", "fly", {}), finish="error")
    broken["choices"][0]["error"] = error

    played = play(OpenAI, broken)

    assert isinstance(played.error, TrialError)
    assert (played.error.stage, played.error.kind, played.error.retryable) == ("model", kind, True)
    assert (str(played.error), played.transcript.tool_calls, len(played.asked)) == (message, (), 1)


def test_max_turns_bounds_the_model_calls_of_a_message(play: Any, completion: Any) -> None:
    calling = completion(None, ("c1", "fly", {}))

    played = play(OpenAI, calling, calling, calling, max_turns=2)

    assert isinstance(played.error, TrialError)
    assert (played.error.kind, played.error.retryable, len(played.asked)) == ("max_turns", False, 2)
