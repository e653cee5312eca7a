"""What a stream of the Messages API holds: the pieces of a reply make the reply that it would send whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import Response

from keval.plugin import Context, ModelError, TranscriptBuilder, TrialError
from keval_anthropic import Anthropic

Json = dict[str, Any]


def events(*told: Json) -> Response:
    text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in told)
    return Response(text, media_type="text/event-stream")


def start(**usage: int) -> Json:
    message: Json = {"type": "message", "role": "assistant", "content": [], "stop_reason": None, "usage": usage}
    return {"type": "message_start", "message": message}


def block(index: int, begun: Json, *deltas: Json) -> list[Json]:
    told = [{"type": "content_block_start", "index": index, "content_block": begun}]
    told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*told, {"type": "content_block_stop", "index": index}]


def text(index: int, *pieces: str) -> list[Json]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def use(index: int, call: str, *pieces: str) -> list[Json]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, {"type": "tool_use", "id": call, "name": "f", "input": {}}, *deltas)


def end(reason: str, **usage: int | None) -> list[Json]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


@pytest.fixture
def pieces() -> list[str]:
    return []


@pytest.fixture
def watched(pieces: list[str]) -> Context:
    def note(kind: str, data: Any) -> None:
        if kind == "text_streamed":
            pieces.append(data["text"])

    return Context(streams=True, builder=TranscriptBuilder(emit=note))


def test_a_message_is_put_together_and_sent_back_whole(
    play: Callable[..., Any], watched: Context, pieces: list[str]
) -> None:
    thinking = [
        {"type": "thinking_delta", "thinking": "Let "},
        {"type": "thinking_delta", "thinking": "me see."},
        {"type": "signature_delta", "signature": "c2ln"},
    ]
    first = events(
        start(input_tokens=10, cache_read_input_tokens=5, output_tokens=1),
        {"type": "ping"},
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *thinking),
        *text(1, "I look", " it up."),
        *use(2, "t1", '{"a": ', "1}"),
        *use(3, "t2"),
        *end("tool_use", output_tokens=20, input_tokens=None),
    )
    second = events(start(input_tokens=30, output_tokens=1), *text(0, "Fine."), *end("end_turn", output_tokens=2))

    played = play(Anthropic, first, second, context=watched)

    assert played.error is None
    assert [True, True] == [body["stream"] for body in played.bodies]
    assert [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "text", "text": "I look it up."},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
    ] == played.bodies[1]["messages"][1]["content"]
    assert ["I look", " it up.", "Fine."] == pieces
    usage = played.transcript.usage
    assert (45, 22, 5) == (usage.input_tokens, usage.output_tokens, usage.cached_tokens)


@pytest.mark.parametrize(
    ("kind", "failure", "retryable"),
    [
        ("overloaded_error", "http_529", True),
        ("rate_limit_error", "rate_limit", True),
        ("api_error", "http_500", True),
        ("invalid_request_error", "http_400", False),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_told_with_the_status_that_it_stands_for(
    play: Callable[..., Any], watched: Context, kind: str, failure: str, retryable: bool
) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "not now"}}

    played = play(Anthropic, events(start(), *text(0, "I"), error), context=watched)

    assert isinstance(played.error, ModelError)
    assert (failure, retryable) == (played.error.kind, played.error.retryable)
    assert f"{kind}: not now" in str(played.error)


def test_a_call_that_was_cut_off_is_not_made_and_one_that_is_no_json_is_no_reply(
    play: Callable[..., Any], watched: Context
) -> None:
    cut = events(start(), *use(0, "t1", '{"a": '), *end("max_tokens"))
    fine = events(start(), *text(0, "Fine."), *end("end_turn"))
    played = play(Anthropic, cut, fine, context=watched)
    broken = play(Anthropic, events(start(), *use(0, "t1", '{"a": '), *end("tool_use")), context=Context(streams=True))

    (call,) = played.transcript.tool_calls
    assert (0, {}) == (call.executions, call.arguments)
    assert "the call was cut off by the limit of output tokens" == call.error
    assert isinstance(broken.error, TrialError)
    assert "bad_reply" == broken.error.kind


@pytest.mark.parametrize("told", [[{"type": "content_block_delta", "index": 0, "delta": {}}], [start(), *text(7, "I")]])
def test_events_that_do_not_fit_are_no_reply(play: Callable[..., Any], watched: Context, told: list[Json]) -> None:
    played = play(Anthropic, events(*told), context=watched)

    assert isinstance(played.error, TrialError)
    assert ("bad_reply", True) == (played.error.kind, played.error.retryable)
