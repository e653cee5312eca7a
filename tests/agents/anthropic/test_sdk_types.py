"""What the SDK's types can hold, whole and streamed: it is in the transcript, and goes back as it came."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anthropic.types import Message as SdkMessage
from starlette.responses import JSONResponse, Response

from keval import Message, Sample, Trial
from keval.plugin import Citation, Context, TrialError
from keval_analysis.timeline import timelines
from keval_anthropic import Anthropic

Json = dict[str, Any]

USAGE = {"input_tokens": 10, "output_tokens": 5, "service_tier": "priority"}
FOUND = {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "RW5j"}
CITED = {"url": "https://a.example", "title": "A", "cited_text": "Rain ends.", "encrypted_index": "RW8"}
OF_FILE = {"document_index": 0, "document_title": "B", "cited_text": "Dry.", "start_page_number": 1}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain"}}
FETCH = {"type": "server_tool_use", "id": "s2", "name": "web_fetch", "input": {"url": "https://b.example"}}


def reply(stop_reason: str, *content: Json) -> Json:
    """Return a reply that has been through the SDK's types."""
    shape = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    message = SdkMessage.model_validate(shape | {"content": content, "stop_reason": stop_reason, "usage": USAGE})
    return message.model_dump(mode="json", exclude_unset=True)


def streamed(message: Json) -> Response:
    told = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events(message))
    return Response(told, media_type="text/event-stream")


def events(message: Json) -> Iterator[Json]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        begun, deltas = {**block}, []
        for name, kind in (("text", "text_delta"), ("thinking", "thinking_delta"), ("signature", "signature_delta")):
            if name in block:
                begun[name] = ""
                deltas.append({"type": kind, name: block[name]})
        if "input" in block:
            begun["input"] = {}
            deltas.append({"type": "input_json_delta", "partial_json": json.dumps(block["input"])})
        for citation in begun.pop("citations", ()):
            deltas.append({"type": "citations_delta", "citation": citation})
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


@pytest.mark.parametrize("streams", [False, True])
def test_thinking_server_tools_and_citations_are_kept_and_go_back_unchanged(
    play: Callable[..., Any], streams: bool
) -> None:
    paused = reply(
        "pause_turn",
        {"type": "thinking", "thinking": "Is it wet?", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "cmVk"},
        {"type": "text", "text": "I look."},
        SEARCH,
    )
    cited = [
        {"type": "web_search_result_location", **CITED},
        {"type": "page_location", "end_page_number": 2, **OF_FILE},
    ]
    calling = reply(
        "tool_use",
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [FOUND]},
        FETCH,
        {
            "type": "web_fetch_tool_result",
            "tool_use_id": "s2",
            "content": {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"},
        },
        {"type": "thinking", "thinking": "It ends.", "signature": "c2lo"},
        {"type": "text", "text": "Rain "},
        {"type": "text", "text": "ends.", "citations": cited},
        {"type": "tool_use", "id": "t1", "name": "fly", "input": {"to": "Rome"}},
    )
    answers = [paused, calling, reply("end_turn", {"type": "text", "text": "Dry."})]

    played = play(Anthropic, *map(streamed, answers) if streams else answers, context=Context(streams=streams))

    assert played.error is None
    told = [message for message in played.bodies[2]["messages"] if message["role"] == "assistant"]
    assert [each["content"] for each in told] == [paused["content"], calling["content"]]
    transcript = played.transcript
    sources = (Citation("A", "https://a.example", "Rain ends."), Citation("B", "", "Dry."))
    assert [message for message in transcript.messages if message.role == "assistant"] == [
        Message("assistant", "I look.", reasoning="Is it wet?"),
        Message("assistant", "Rain ends.", reasoning="It ends.", citations=sources),
        Message("assistant", "Dry."),
    ]
    assert [(call.name, call.arguments, call.result, call.error, call.own) for call in transcript.tool_calls] == [
        (
            "web_search",
            {"query": "rain"},
            '[{"title": "A", "type": "web_search_result", "url": "https://a.example"}]',
            None,
            True,
        ),
        (
            "web_fetch",
            {"url": "https://b.example"},
            None,
            '{"error_code": "url_not_accessible", "type": "web_fetch_tool_result_error"}',
            True,
        ),
        ("fly", {"to": "Rome"}, None, "there is no tool named 'fly'", False),
    ]
    assert [(call.at is None, call.duration is None) for call in transcript.tool_calls] == [
        *[(True, True)] * 2,
        (False, False),
    ]
    assert (transcript.usage.input_tokens, transcript.usage.service_tier) == (30, "priority")
    (timeline,) = timelines(Trial("t", Sample("s", "?"), "a", "c", 1, transcript))
    assert [step.label for step in timeline.steps] == [
        *("question", "model call 1", "text", "web_search", "model call 2", "text", "web_fetch", "fly"),
        *("model call 3", "answer"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"content": [{"type": "text"}]}, headers={"request-id": "req_7"}),
        Response("<html>", headers={"request-id": "req_7"}),
        Response('data: {"type": "ping"}\n\n', media_type="text/event-stream", headers={"request-id": "req_7"}),
        Response(
            'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n',
            media_type="text/event-stream",
            headers={"request-id": "req_7"},
        ),
    ],
)
def test_a_reply_that_is_wrong_is_named_by_its_request(play: Callable[..., Any], answer: Response) -> None:
    played = play(Anthropic, answer, context=Context(streams=True))

    assert isinstance(played.error, TrialError)
    assert str(played.error).endswith(" (request req_7)")
    assert str(played.error).count("req_7") == 1
