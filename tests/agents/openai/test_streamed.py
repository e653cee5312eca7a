"""What endpoints do to streams: the pieces of a reply make the reply that they would send whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import Response

from keval.plugin import Context, TranscriptBuilder, TrialError
from keval_openai import OpenAI

Json = dict[str, Any]


def events(*told: Json, end: str = "data: [DONE]\n\n") -> Response:
    return Response("".join(f"data: {json.dumps(each)}\n\n" for each in told) + end, media_type="text/event-stream")


def chunk(finish: str | None = None, **delta: Any) -> Json:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int | None = 0, *, id: str | None = None, name: str | None = None, arguments: str = "") -> Json:
    named = {} if index is None else {"index": index}
    return {**named, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


class Watched:
    """A context in which somebody reads along."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.context = Context(streams=True, builder=TranscriptBuilder(emit=self._note))

    def _note(self, kind: str, data: Any) -> None:
        if kind == "text_streamed":
            self.pieces.append(data["text"])


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_completion_is_asked_for_as_a_stream_with_its_usage(play: Callable[..., Any], watched: Watched) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    told = events(
        chunk(role="assistant", content=""),
        chunk(content="I am "),
        chunk(content="well."),
        chunk("stop"),
        {"choices": [], "usage": usage},
    )

    played = play(OpenAI, told, context=watched.context)

    (body,) = played.bodies
    assert (True, {"include_usage": True}) == (body["stream"], body["stream_options"])
    assert (["I am ", "well."], "I am well.") == (watched.pieces, played.transcript.output)
    assert (7, 3) == (played.transcript.usage.input_tokens, played.transcript.usage.output_tokens)


@pytest.mark.parametrize(
    "deltas",
    [
        [
            [call(0, id="a", name="f"), call(1, id="b", name="g")],
            [call(1, arguments='{"n"')],
            [call(0, arguments="{}")],
            [call(1, arguments=": 2}")],
        ],
        [[call(0, id="a", name="f", arguments="{}")], [call(0, id="b", name="g", arguments='{"n": 2}')]],
        [
            [call(0, id="a", name="f"), call(1, id="b", name="g")],
            [call(0, id="a", name="f", arguments="{}")],
            [call(1, id="b", name="g", arguments='{"n": 2}')],
        ],
        [[call(None, id="a", name="f", arguments="{}"), call(None, id="b", name="g", arguments='{"n": 2}')]],
    ],
    ids=["interleaved", "one index for all", "names again and again", "no index"],
)
def test_calls_are_put_together_and_sent_back_whole(
    play: Callable[..., Any], watched: Watched, completion: Callable[..., Json], deltas: list[Any]
) -> None:
    told = [chunk(role="assistant", reasoning_content="Let me "), chunk(role="assistant", reasoning_content="see.")]
    told += [chunk(tool_calls=each) for each in deltas]

    played = play(
        OpenAI, events(*told, chunk("tool_calls")), events(chunk("stop", content="Fine.")), context=watched.context
    )

    back = played.bodies[1]["messages"][1]
    wanted = [("a", {"name": "f", "arguments": "{}"}), ("b", {"name": "g", "arguments": '{"n": 2}'})]
    assert [{"id": each, "type": "function", "function": function} for each, function in wanted] == back["tool_calls"]
    assert ("assistant", "Let me see.") == (back["role"], back["reasoning_content"])
    assert [("f", {}), ("g", {"n": 2})] == [(each.name, each.arguments) for each in played.transcript.tool_calls]


RESPONSE: Json = {"id": "r", "status": "completed", "output": [], "usage": None}


@pytest.mark.parametrize(
    ("api", "told", "kind", "retryable"),
    [
        ("chat", {"error": {"code": 502, "message": "the provider hung up"}}, "http_502", True),
        ("chat", {"error": {"code": "rate_limit_exceeded", "message": "too many"}}, "rate_limit", True),
        ("chat", {"choices": [{"delta": {"content": [1]}}]}, "bad_reply", True),
        ("chat", {"choices": 7}, "bad_reply", True),
        ("responses", {"type": "error", "code": "rate_limit_exceeded", "message": "."}, "rate_limit", True),
        ("chat", {"error": "it broke off"}, "http_500", True),
        ("responses", {"error": {"code": None, "message": "broke off"}}, "http_500", True),
        (
            "responses",
            {
                "type": "response.failed",
                "response": {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "."}},
            },
            "http_500",
            True,
        ),
        (
            "responses",
            {
                "type": "response.failed",
                "response": {**RESPONSE, "status": "failed", "error": {"code": "invalid_prompt", "message": "."}},
            },
            "http_400",
            False,
        ),
    ],
)
def test_a_failure_in_the_middle_of_a_stream_is_told(
    play: Callable[..., Any], api: str, told: Json, kind: str, retryable: bool
) -> None:
    watched = Watched()
    begun = {"type": "response.output_text.delta", "delta": "I"} if api == "responses" else chunk(content="I")

    played = play(OpenAI, events(begun, told), context=watched.context, api=api)

    assert isinstance(played.error, TrialError)
    assert (kind, retryable, "model") == (played.error.kind, played.error.retryable, played.error.stage)
    assert ([], ["I"]) == ([each for each in played.transcript.messages if each.role == "assistant"], watched.pieces)


def test_a_response_is_what_the_last_event_has_and_is_asked_for_without_reasoning_where_that_is_refused(
    play: Callable[..., Any], watched: Watched, response: Callable[..., Json]
) -> None:
    refusal = {"error": {"message": "no", "type": "invalid_request_error", "param": "include", "code": None}}
    refused = Response(json.dumps(refusal), 400, media_type="application/json")
    whole = response(
        "No.",
        {
            "type": "message",
            "id": "m2",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": " I will not."}],
        },
    )
    told = events(
        {"type": "response.output_text.delta", "delta": "No."},
        {"type": "response.refusal.delta", "delta": " I will not."},
        {"type": "response.completed", "response": whole},
        end="",
    )

    played = play(OpenAI, refused, told, context=watched.context, api="responses")

    assert [True, True] == [body["stream"] for body in played.bodies]
    assert ["include" in body for body in played.bodies] == [True, False]
    assert (["No.", " I will not."], "No. I will not.") == (watched.pieces, played.transcript.output)
