"""What the SDK's types can hold, whole and streamed: it is in the transcript, and goes back as it came."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as SdkResponse
from starlette.responses import JSONResponse, Response

from keval import Message
from keval.plugin import Citation, Context, TrialError
from keval_openai import OpenAI

Json = dict[str, Any]

USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 15,
}
CITED = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 4}
OF_FILE = {"type": "file_citation", "file_id": "f1", "filename": "b.pdf", "index": 1}


def response(*output: Json) -> Json:
    """Return a reply that has been through the SDK's types."""
    shape = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True}
    shape |= {"tool_choice": "auto", "tools": [], "status": "completed", "service_tier": "flex"}
    whole = SdkResponse.model_validate({**shape, "output": output, "usage": USAGE})
    return whole.model_dump(mode="json", exclude_unset=True)


def said(text: str, *annotations: Json) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [*annotations]}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def thought(text: str, encrypted: str | None) -> Json:
    summary = [{"type": "summary_text", "text": text}]
    return {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": encrypted}


SERVED: list[Json] = [
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "rain", "sources": [{"type": "url", "url": "https://a.example"}]},
    },
    {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": ["rain"],
        "results": [{"filename": "b.pdf", "text": "Dry."}],
    },
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "failed",
        "container_id": "c",
        "code": "1/0",
        "outputs": None,
    },
    {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "w",
        "name": "forecast",
        "arguments": '{"city": "Rome"}',
        "output": "sunny",
        "status": "completed",
    },
]


def as_stream(answer: Json) -> Response:
    event = {"type": "response.completed", "response": answer}
    return Response(f"data: {json.dumps(event)}\n\n", media_type="text/event-stream")


@pytest.mark.parametrize("streams", [False, True])
def test_reasoning_server_tools_and_citations_are_kept_and_go_back_unchanged(
    play: Callable[..., Any], streams: bool
) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "fly", "arguments": "{}"}
    first = response(thought("Is it wet?", "gAAA"), said("I look."), *SERVED, call)
    answer = response(thought("It ends.", "gAAB"), said("Rain ends.", CITED, OF_FILE))
    answers = [first, answer]

    played = play(
        OpenAI, *map(as_stream, answers) if streams else answers, context=Context(streams=streams), api="responses"
    )

    assert played.error is None
    assert played.bodies[1]["input"][1:-1] == first["output"]
    transcript = played.transcript
    assert [message for message in transcript.messages if message.role == "assistant"] == [
        Message("assistant", "I look.", reasoning="Is it wet?"),
        Message(
            "assistant",
            "Rain ends.",
            reasoning="It ends.",
            citations=(Citation("A", "https://a.example"), Citation("b.pdf")),
        ),
    ]
    assert [(call.name, call.arguments, call.result, call.error, call.own) for call in transcript.tool_calls] == [
        (
            "web_search",
            {"type": "search", "query": "rain"},
            '[{"type": "url", "url": "https://a.example"}]',
            None,
            True,
        ),
        ("file_search", {"queries": ["rain"]}, '[{"filename": "b.pdf", "text": "Dry."}]', None, True),
        ("code_interpreter", {"code": "1/0"}, None, "failed", True),
        ("forecast", {"city": "Rome"}, "sunny", None, True),
        ("fly", {}, None, "there is no tool named 'fly'", False),
    ]
    usage = transcript.usage
    assert (usage.input_tokens, usage.cached_tokens, usage.reasoning_tokens, usage.service_tier) == (20, 8, 6, "flex")


def test_calls_of_the_services_own_tools_stay_out_where_their_reasoning_cannot_go_back(
    play: Callable[..., Any],
) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "fly", "arguments": "{}"}
    first = response(thought("Is it wet?", None), *SERVED, call)

    played = play(OpenAI, first, response(said("Dry.")), api="responses")

    assert [item.get("type") for item in played.bodies[1]["input"]] == [None, "function_call", "function_call_output"]
    assert [message.reasoning for message in played.transcript.messages if message.reasoning] == ["Is it wet?"]


MISTRALS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Is it "}, {"type": "text", "text": "wet?"}]},
    {"type": "text", "text": "Rain ends."},
]


@pytest.mark.parametrize(
    "told",
    [
        {"content": "Rain ends.", "reasoning_content": "Is it wet?"},
        {"content": "Rain ends.", "reasoning": "Is it wet?", "reasoning_content": None},
        {"content": "<think>Is it wet?</think>Rain ends."},
        {"content": MISTRALS},
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_chat_tells_its_reasoning_in_several_ways(play: Callable[..., Any], told: Json, streams: bool) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "fly", "arguments": "{}"}}
    cited = {"type": "url_citation", "url_citation": {key: CITED[key] for key in CITED if key != "type"}}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}

    def answer(**message: Any) -> Json:
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        shape = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "service_tier": "priority"}
        if not isinstance(message["content"], list):  # which no type of OpenAI's is
            choice = ChatCompletion.model_validate({**shape, "choices": [choice]}).choices[0].model_dump(mode="json")
        return {**shape, "choices": [choice], "usage": usage}

    def in_pieces(whole: Json) -> Response:
        message = whole["choices"][0]["message"]
        content = message["content"]
        steps = [{"content": each} for each in ([[part] for part in content] if isinstance(content, list) else content)]
        if steps and isinstance(content, list):  # Mistral's text comes as plain text, after its thinking
            steps[-1:] = [{"content": piece} for piece in content[-1]["text"]]
        beside = {name: value for name, value in message.items() if name not in ("content", "role")}
        chunks = [{"choices": [{"delta": step}]} for step in ({"role": "assistant", "content": ""}, beside, *steps)]
        end = {**whole, "choices": [{"delta": {}, "finish_reason": "stop"}]}
        told = "".join(f"data: {json.dumps(each)}\n\n" for each in (*chunks, end))
        return Response(told, media_type="text/event-stream")

    # OpenRouter's annotation of a file that was read cites nothing, and others may be of any form.
    odd = [{"type": "file", "file": {"hash": "h", "content": []}}, {"url": None}, "page"]
    answers = [answer(**told, tool_calls=[call]), answer(content="Dry.", annotations=[cited])]
    answers[1]["choices"][0]["message"]["annotations"] += odd
    played = play(OpenAI, *map(in_pieces, answers) if streams else answers, context=Context(streams=streams))

    assert played.error is None
    assert [message for message in played.transcript.messages if message.role == "assistant"] == [
        Message("assistant", "Rain ends.", reasoning="Is it wet?"),
        Message("assistant", "Dry.", citations=(Citation("A", "https://a.example"),)),
    ]
    back = played.bodies[1]["messages"][1]
    assert {name: back[name] for name in told} == told
    assert played.transcript.usage.service_tier == "priority"


@pytest.mark.parametrize(
    ("api", "answer"),
    [
        ("chat", {"choices": []}),
        ("chat", {"choices": [{"message": {"content": "I"}, "finish_reason": "error", "error": {"message": "down"}}]}),
        ("responses", {"status": "failed", "error": {"code": "server_error", "message": "tired"}}),
    ],
)
def test_a_reply_that_is_wrong_is_named_by_its_request(play: Callable[..., Any], api: str, answer: Json) -> None:
    played = play(OpenAI, JSONResponse(answer, headers={"x-request-id": "req_7"}), api=api)

    assert isinstance(played.error, TrialError)
    assert str(played.error).endswith(" (request req_7)")
