"""How a failing model shows: as an error, never as an answer."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import JSONResponse

from keval import Usage
from keval.plugin import TrialError
from keval_anthropic import Anthropic


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"error": {"message": "overloaded"}}),
        JSONResponse({"content": None}),
        JSONResponse({"content": [{"type": "text"}]}),
        JSONResponse({"content": [{"type": "tool_use"}]}),
        JSONResponse({"content": [{"type": "text", "text": ["Hi"]}]}),
    ],
)
def test_a_reply_that_is_none_is_no_answer(play: Any, answer: Any) -> None:
    played = play(Anthropic, answer)

    error = played.error
    assert isinstance(error, TrialError)
    assert (error.stage, error.kind, error.retryable) == ("model", "bad_reply", True)
    assert "that is no reply: " in str(error)
    assert played.transcript.output == ""


@pytest.mark.parametrize(
    ("ended", "kind"),
    [("max_tokens", "cut_off"), ("refusal", "refused"), ("model_context_window_exceeded", "cut_off")],
)
@pytest.mark.parametrize("blocks", [[], [{"type": "thinking", "thinking": "Hm.", "signature": "EqQ"}], ["\n"]])
def test_a_reply_that_ended_early_with_nothing_in_it_is_no_answer(
    play: Any, message: Any, blocks: Any, ended: str, kind: str
) -> None:
    played = play(Anthropic, message(*blocks, stop_reason=ended))

    assert isinstance(played.error, TrialError)
    assert (played.error.stage, played.error.kind, played.error.retryable) == ("model", kind, False)
    assert "ended the reply before it said anything; " in str(played.error)
    assert (played.transcript.model_calls, played.transcript.usage) == (1, Usage(10, 5, 0))


def test_max_turns_bounds_the_model_calls_of_a_message(play: Any, message: Any, use: Any) -> None:
    calling = message(use("t1", "fly"))

    played = play(Anthropic, calling, calling, calling, max_turns=2)

    assert isinstance(played.error, TrialError)
    assert (played.error.kind, played.error.retryable, len(played.asked)) == ("max_turns", False, 2)
