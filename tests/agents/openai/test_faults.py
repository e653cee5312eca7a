"""How a failing model shows: as an error, never as an answer."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse

from keval import ModelError, TrialError
from keval_openai import OpenAI

each_api = pytest.mark.parametrize("api", ["chat", "responses"])


def test_a_failed_trial_keeps_what_it_had(play: Any, completion: Any) -> None:
    played = play(OpenAI, completion("Let me see.", ("c1", "fly", {})), PlainTextResponse("down", 503))

    assert isinstance(played.error, ModelError)
    assert [message.text for message in played.transcript.messages] == [
        "How are you?",
        "Let me see.",
        "there is no tool named 'fly'",
    ]
    assert (played.transcript.model_calls, len(played.transcript.turn_durations)) == (1, 1)


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


def test_max_turns_bounds_the_model_calls_of_a_message(play: Any, completion: Any) -> None:
    calling = completion(None, ("c1", "fly", {}))

    played = play(OpenAI, calling, calling, calling, max_turns=2)

    assert isinstance(played.error, TrialError)
    assert (played.error.kind, played.error.retryable, len(played.asked)) == ("max_turns", False, 2)
