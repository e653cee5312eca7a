"""Every wire protocol, driven by the vendor's own SDK against the real application on a real port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import httpx
import pytest
from anthropic import AsyncAnthropic
from google import genai
from google.genai import types
from openai import AsyncOpenAI

from keval import Usage
from keval_doubles.responders import Scripted
from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ModelFault, Respond, admission, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LONG = "It is 14 °C in São Paulo, with light rain. " * 5
CALLS = (ChatCall("get_weather", {"city": "Łódź"}), ChatCall("get_weather", {"city": "New York"}))
BOTH = ChatReply("Let me look.", CALLS, Usage(100, 20, cached_tokens=30, reasoning_tokens=5))


@attrs.define
class Script:
    """Answers with one reply, and keeps the requests it saw."""

    reply: ChatReply | ModelFault
    seen: list[ChatRequest] = attrs.field(factory=list)

    def __call__(self, request: ChatRequest) -> ChatReply:
        self.seen.append(request)
        if isinstance(self.reply, ModelFault):
            raise self.reply
        return self.reply


def run(respond: Respond, use: Callable[[str], Awaitable[Any]], **options: Any) -> Any:
    async def scenario() -> Any:
        async with serve(build_app(respond, **options)) as base:
            return await use(base)

    return asyncio.run(scenario())


def openai_client(base: str, key: str = "k") -> AsyncOpenAI:
    return AsyncOpenAI(base_url=wire_urls(base)["openai-chat"], api_key=key, max_retries=0)


def anthropic_client(base: str, key: str = "k") -> AsyncAnthropic:
    return AsyncAnthropic(base_url=wire_urls(base)["anthropic"], api_key=key, max_retries=0)


def gemini_client(base: str, key: str = "k") -> genai.Client:
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=wire_urls(base)["gemini"]))


FUNCTION = {"name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA}
PLAIN_FUNCTION = {"type": "function", "strict": False, **FUNCTION}


async def ask_chat(base: str, stream: bool, key: str = "k") -> dict[str, Any]:
    async with openai_client(base, key) as client:
        asked: dict[str, Any] = {
            "model": "weather",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}],
            "tools": [{"type": "function", "function": FUNCTION}],
            "seed": 7,
            "extra_headers": {"x-keval-trial": "a%2Fb", "x-keval-repetition": "3"},
        }
        if stream:
            async with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
                completion: Any = await events.get_final_completion()
        else:
            completion = await client.chat.completions.create(**asked)
        message, usage = completion.choices[0].message, completion.usage
        return {
            "text": message.content or "",
            "calls": [(call.function.name, call.function.arguments) for call in message.tool_calls or ()],
            "ids": [call.id for call in message.tool_calls or ()],
            "end": completion.choices[0].finish_reason,
            "usage": (
                usage.prompt_tokens,
                usage.completion_tokens,
                usage.prompt_tokens_details.cached_tokens,
                usage.completion_tokens_details.reasoning_tokens,
            ),
        }


async def ask_responses(base: str, stream: bool, key: str = "k") -> dict[str, Any]:
    async with openai_client(base, key) as client:
        asked: dict[str, Any] = {
            "model": "weather",
            "instructions": "Be brief.",
            "input": "Weather?",
            "tools": [PLAIN_FUNCTION],
            "extra_headers": {"x-keval-trial": "a%2Fb", "x-keval-repetition": "3"},
        }
        if stream:
            async with client.responses.stream(**asked) as events:
                response: Any = await events.get_final_response()
        else:
            response = await client.responses.create(**asked)
        calls = [item for item in response.output if item.type == "function_call"]
        return {
            "text": response.output_text,
            "calls": [(call.name, call.arguments) for call in calls],
            "ids": [call.call_id for call in calls],
            "end": response.status,
            "usage": (
                response.usage.input_tokens,
                response.usage.output_tokens,
                response.usage.input_tokens_details.cached_tokens,
                response.usage.output_tokens_details.reasoning_tokens,
            ),
        }


async def ask_anthropic(base: str, stream: bool, key: str = "k") -> dict[str, Any]:
    async with anthropic_client(base, key) as client:
        asked: dict[str, Any] = {
            "model": "weather",
            "max_tokens": 100,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Weather?"}],
            "tools": [{"name": "get_weather", "description": "Weather of a city", "input_schema": SCHEMA}],
            "extra_headers": {"x-keval-trial": "a%2Fb", "x-keval-repetition": "3"},
        }
        if stream:
            async with client.messages.stream(**asked) as events:
                message: Any = await events.get_final_message()
        else:
            message = await client.messages.create(**asked)
        uses = [block for block in message.content if block.type == "tool_use"]
        return {
            "text": "".join(block.text for block in message.content if block.type == "text"),
            "calls": [(use.name, use.input) for use in uses],
            "ids": [use.id for use in uses],
            "end": message.stop_reason,
            "usage": (message.usage.input_tokens, message.usage.output_tokens, message.usage.cache_read_input_tokens),
        }


async def ask_gemini(base: str, stream: bool, key: str = "k") -> dict[str, Any]:
    client = gemini_client(base, key)
    declaration = types.FunctionDeclaration(
        name="get_weather", description="Weather of a city", parameters_json_schema=SCHEMA
    )
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[types.Tool(function_declarations=[declaration])],
        seed=7,
        http_options=types.HttpOptions(headers={"x-keval-trial": "a%2Fb", "x-keval-repetition": "3"}),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    asked: dict[str, Any] = {"model": "weather", "contents": "Weather?", "config": config}
    try:
        if stream:
            parts: list[Any] = [part async for part in await client.aio.models.generate_content_stream(**asked)]
        else:
            parts = [await client.aio.models.generate_content(**asked)]
    finally:
        await client.aio.aclose()
    content = [part for response in parts for part in response.candidates[0].content.parts]
    calls = [part.function_call for part in content if part.function_call]
    usage = parts[-1].usage_metadata
    return {
        "text": "".join(part.text for part in content if part.text),
        "calls": [(call.name, call.args) for call in calls],
        "ids": [call.id for call in calls],
        "end": parts[-1].candidates[0].finish_reason.value,
        "usage": (
            usage.prompt_token_count,
            usage.candidates_token_count,
            usage.cached_content_token_count,
            usage.thoughts_token_count,
        ),
    }


ASKS = {"openai-chat": ask_chat, "openai-responses": ask_responses, "anthropic": ask_anthropic, "gemini": ask_gemini}
EACH_WIRE = pytest.mark.parametrize("wire", ASKS)
EACH_MODE = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@EACH_WIRE
@EACH_MODE
def test_text_arrives_whole(wire: str, stream: bool) -> None:
    said = run(Script(ChatReply(LONG)), lambda base: ASKS[wire](base, stream))

    assert said["text"] == LONG
    assert said["calls"] == []
    assert said["end"] in ("stop", "completed", "end_turn", "STOP")


@EACH_WIRE
@EACH_MODE
def test_text_parallel_calls_and_usage_arrive_together(wire: str, stream: bool) -> None:
    said = run(Script(BOTH), lambda base: ASKS[wire](base, stream))

    arguments = ['{"city":"Łódź"}', '{"city":"New York"}'] if "openai" in wire else [dict(c.arguments) for c in CALLS]
    assert said["text"] == "Let me look."
    assert said["calls"] == [("get_weather", each) for each in arguments]
    assert len(set(said["ids"])) == 2
    assert said["end"] in ("tool_calls", "completed", "tool_use", "STOP")
    # Anthropic's input tokens leave cached ones out, and Gemini's candidates leave thoughts out.
    assert said["usage"] == {"anthropic": (70, 20, 30), "gemini": (100, 15, 30, 5)}.get(wire, (100, 20, 30, 5))


@EACH_WIRE
@EACH_MODE
def test_the_request_is_read_into_neutral_records(wire: str, stream: bool) -> None:
    script = Script(ChatReply("Fine."))

    run(script, lambda base: ASKS[wire](base, stream))

    (seen,) = script.seen
    assert seen.wire == wire
    assert seen.model == "weather"
    assert seen.system == "Be brief."
    assert seen.messages == (ChatMessage("user", "Weather?"),)
    assert [(tool.name, tool.description, tool.parameters) for tool in seen.tools] == [
        ("get_weather", "Weather of a city", SCHEMA)
    ]
    assert (seen.trial, seen.repetition, seen.stream) == ("a/b", 3, stream)
    assert seen.seed == (7 if wire in ("openai-chat", "gemini") else None)
    assert seen.headers["x-keval-trial"] == "a%2Fb"


def test_the_count_of_discarded_answers_is_read_from_its_header() -> None:
    script = Script(ChatReply("Hello."))

    async def each(base: str) -> list[int]:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        headers: list[dict[str, str]] = [{}, {"x-keval-resample": "2"}, {"x-keval-resample": "often"}]
        async with httpx.AsyncClient() as client:
            url = f"{base}/openai/v1/chat/completions"
            return [(await client.post(url, json=body, headers=header)).status_code for header in headers]

    statuses = run(script, each)

    assert [200, 200, 400] == statuses
    assert [0, 2] == [request.resample for request in script.seen]


def test_system_messages_among_others_are_read_as_instructions() -> None:
    said = [{"type": "text", "text": "Answer in French."}]
    messages = [{"role": "system", "content": said}, {"role": "user", "content": "Weather?"}]
    body = {"model": "m", "max_tokens": 5, "system": "Be brief.", "messages": [*messages, *messages[:1]]}
    script = Script(ChatReply("Bien."))

    async def ask(base: str) -> int:
        async with httpx.AsyncClient() as client:
            return (await client.post(f"{base}/anthropic/v1/messages", json=body)).status_code

    status = run(script, ask)

    (seen,) = script.seen
    assert (200, (ChatMessage("user", "Weather?"),)) == (status, seen.messages)
    assert "Be brief.\n\nAnswer in French.\n\nAnswer in French." == seen.system


def test_functions_in_a_namespace_or_added_later_are_offered_and_called() -> None:
    script = Script(ChatReply(calls=(ChatCall("mcp__city__get_weather", {"city": "Rome"}),)))
    custom = {"type": "custom", "name": "exec", "description": "Run a line"}
    tools: Any = [
        {"type": "namespace", "name": "mcp__city", "description": "Cities", "tools": [PLAIN_FUNCTION, custom]}
    ]
    call = {
        "type": "function_call",
        "namespace": "mcp__city",
        "name": "get_weather",
        "call_id": "c1",
        "arguments": "{}",
    }
    more = {"type": "additional_tools", "role": "developer", "tools": [{**PLAIN_FUNCTION, "name": "get_time"}]}
    asked: Any = [
        {"role": "user", "content": "Weather?"},
        more,
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
    ]

    async def ask(base: str) -> Any:
        async with (
            openai_client(base) as client,
            client.responses.stream(model="m", input=asked, tools=tools) as events,
        ):
            return await events.get_final_response()

    response = run(script, ask)

    (seen,), (called,) = script.seen, response.output
    assert ["mcp__city__get_weather", "get_time"] == [tool.name for tool in seen.tools]
    assert ["", "mcp__city__get_weather"] == [seen.messages[1].text, seen.messages[1].calls[0].name]
    assert ("mcp__city", "get_weather", '{"city":"Rome"}') == (called.namespace, called.name, called.arguments)


def test_equal_questions_are_canonically_equal_on_every_wire() -> None:
    script = Script(ChatReply("Fine."))

    async def each(base: str) -> None:
        for ask in ASKS.values():
            await ask(base, False)

    run(script, each)

    assert len(script.seen) == 4
    assert len({request.canonical() for request in script.seen}) == 1


@EACH_WIRE
def test_a_fault_is_the_protocols_error_with_retry_after(wire: str) -> None:
    script = Script(ChatReply())

    async def each(base: str) -> list[Any]:
        errors = []
        for status in (429, 500, 503):
            script.reply = ModelFault(status, "come back later", retry_after=2.5)
            with pytest.raises(Exception, match="come back later") as caught:
                await ASKS[wire](base, False)
            errors.append(caught.value)
        return errors

    errors = run(script, each)

    assert [error.code if wire == "gemini" else error.status_code for error in errors] == [429, 500, 503]
    assert [error.response.headers["retry-after"] for error in errors] == ["3", "3", "3"]


def test_a_responder_that_breaks_is_a_server_error_that_says_how(caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: ChatRequest) -> ChatReply:
        raise ZeroDivisionError("by nought")

    with pytest.raises(Exception, match="by nought"):
        run(broken, lambda base: ask_chat(base, False))

    assert "the responder failed" in caplog.text


def test_a_responder_that_returns_no_reply_is_a_server_error_that_says_so() -> None:
    with pytest.raises(Exception, match="returned the type int, not a ChatReply"):
        run(Scripted([{"returns": 42}]), lambda base: ask_chat(base, False))


def test_a_responder_may_be_a_coroutine_function_and_observers_are_told_first() -> None:
    told: list[str] = []

    async def respond(request: ChatRequest) -> ChatReply:
        told.append("respond")
        return ChatReply("Slowly.")

    said = run(respond, lambda base: ask_chat(base, False), observe=lambda request: told.append("observe"))

    assert said["text"] == "Slowly."
    assert told == ["observe", "respond"]


def test_unset_usage_is_counted_from_the_content() -> None:
    script = Script(ChatReply("Yes."))

    async def twice(base: str) -> list[dict[str, Any]]:
        short = await ask_chat(base, False)
        script.reply = ChatReply(LONG)
        return [short, await ask_chat(base, False)]

    short, long = run(script, twice)

    assert short["usage"][0] == long["usage"][0] > 10
    assert long["usage"][1] > short["usage"][1] > 0


def test_ids_are_the_same_for_the_same_trial_and_differ_between_trials() -> None:
    async def twice(base: str) -> list[str]:
        async with httpx.AsyncClient() as client:
            return [
                (
                    await client.post(
                        f"{base}/openai/v1/chat/completions",
                        json={"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
                        headers={"x-keval-trial": trial},
                    )
                ).json()["id"]
                for trial in ("a", "a", "b")
            ]

    first, again, other = run(Script(ChatReply("Hi.")), twice)

    assert first == again != other


NOWHERE = {
    "/openai/v1/nothing": "type",
    "/anthropic/v1/nothing": "type",
    "/gemini/v1beta/models/m:embedContent": "status",
    "/": "status",
}


def test_unknown_paths_are_not_found_in_the_protocols_shape() -> None:
    async def each(base: str) -> dict[str, httpx.Response]:
        async with httpx.AsyncClient() as client:
            return {path: await client.post(base + path, json={}) for path in NOWHERE}

    responses = run(Script(ChatReply("no")), each)

    assert [response.status_code for response in responses.values()] == [404] * len(NOWHERE)
    for path, field in NOWHERE.items():
        error = responses[path].json()["error"]
        assert "is not served here" in error["message"]
        assert field in error


MALFORMED = [
    ("/openai/v1/chat/completions", b"not json"),
    ("/openai/v1/chat/completions", b"[]"),
    ("/openai/v1/chat/completions", b'{"model": "m"}'),
    ("/openai/v1/chat/completions", b'{"model": "m", "messages": []}'),
    ("/openai/v1/chat/completions", b'{"model": "m", "messages": 3}'),
    ("/openai/v1/chat/completions", b'{"model": "m", "messages": [{"role": "poet", "content": "x"}]}'),
    ("/openai/v1/responses", b'{"model": "m", "input": [{"type": "image_generation_call"}]}'),
    ("/openai/v1/responses", b'{"model": "m", "input": "x", "previous_response_id": "resp_unknown"}'),
    ("/openai/v1/responses", b'{"model": "m", "input": [{"type": "function_call_output", "call_id": "c"}]}'),
    ("/anthropic/v1/messages", b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'),
    ("/anthropic/v1/messages", b'{"model": "m", "max_tokens": 5, "messages": [{"role": "system", "content": ""}]}'),
    ("/gemini/v1beta/models/m:generateContent", b"{}"),
    ("/openai/v1/chat/completions", b'{"model": "m", "max_tokens": 0, "messages": [{"role": "user", "content": "x"}]}'),
    ("/openai/v1/responses", b'{"model": "m", "max_output_tokens": true, "input": "x"}'),
    ("/anthropic/v1/messages", b'{"model": "m", "max_tokens": "5", "messages": [{"role": "user", "content": "x"}]}'),
    (
        "/gemini/v1beta/models/m:generateContent",
        b'{"generationConfig": {"maxOutputTokens": 0.5}, "contents": [{"parts": [{"text": "x"}]}]}',
    ),
    ("/gemini/v1beta/models/m:streamGenerateContent", b'{"contents": [{"parts": [{"text": "x"}]}]}'),
]


def test_malformed_requests_are_refused_with_400() -> None:
    async def each(base: str) -> list[httpx.Response]:
        async with httpx.AsyncClient() as client:
            return [await client.post(base + path, content=body) for path, body in MALFORMED]

    responses = run(Script(ChatReply("no")), each)

    assert [response.status_code for response in responses] == [400] * len(MALFORMED)
    told = [response.json()["error"]["message"] for response in responses]
    assert all(told)
    assert "input: no tool call found for function call output with call_id c" in told


@pytest.mark.parametrize(
    ("header", "statuses"),
    [
        ("host", {
            "evil.example": 421, "evil.example:{port}": 421, "127.0.0.1.evil.example:{port}": 421, "": 421,
            "localhost": 421, "127.0.0.1:1": 421, "localhost:{port}": 200, "LocalHost:{port}": 200, "[::1]:{port}": 200,
        }),
        ("origin", {
            "http://evil.example": 403, "null": 403, "": 403, "http://localhost": 403, "http://127.0.0.1:1": 403,
            "http://localhost:{port}": 200, "http://127.0.0.1:{port}": 200, "http://evil.example:{port}": 403,
        }),
    ],
)  # fmt: skip
def test_only_loopback_on_its_own_port_is_answered(header: str, statuses: dict[str, int]) -> None:
    async def each(base: str) -> dict[str, int]:
        port = base.rpartition(":")[2]
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        url = f"{base}/openai/v1/chat/completions"
        async with httpx.AsyncClient() as client:
            return {
                value: (await client.post(url, json=body, headers={header: value.format(port=port)})).status_code
                for value in statuses
            }

    assert statuses == run(Script(ChatReply("Hi.")), each)


PATHS = {
    "openai-chat": "/openai/v1/chat/completions",
    "openai-responses": "/openai/v1/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/m:generateContent",
}


def with_tool(wire: str, schema: Any) -> Any:
    """A request with one tool of this schema."""
    said = [{"role": "user", "content": "Hi"}]
    if wire == "openai-chat":
        function = {"name": "t", "parameters": schema}
        return {"model": "m", "messages": said, "tools": [{"type": "function", "function": function}]}
    if wire == "openai-responses":
        return {"model": "m", "input": "Hi", "tools": [{"type": "function", "name": "t", "parameters": schema}]}
    if wire == "anthropic":
        tools = [{"name": "t", "input_schema": schema}]
        return {"model": "m", "max_tokens": 9, "messages": said, "tools": tools}
    declared = [{"name": "t", "parametersJsonSchema": schema}]
    return {"contents": [{"parts": [{"text": "Hi"}]}], "tools": [{"functionDeclarations": declared}]}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


SCHEMAS = {
    "fits": ({"enum": ["x"] * 19_990}, 200, ""),
    "deep": (nested(63), 200, ""),
    "too large": ({"enum": ["x"] * 20_000}, 400, "the schema of the tool 't' has more than 20,000 values"),
    "too deep": (nested(64), 400, "the schema of the tool 't' is nested more than 64 levels deep"),
    "far too deep": (nested(900), 400, "nested more than 64 levels deep"),
}


@EACH_WIRE
def test_schemas_are_bounded(wire: str) -> None:
    async def each(base: str) -> list[httpx.Response]:
        async with httpx.AsyncClient() as client:
            return [
                await client.post(base + PATHS[wire], content=json.dumps(with_tool(wire, schema)))
                for schema, _, _ in SCHEMAS.values()
            ]

    responses = run(Script(ChatReply("Hi.")), each)

    told = [(r.status_code, "" if r.is_success else r.json()["error"]["message"]) for r in responses]
    assert [status for _, status, _ in SCHEMAS.values()] == [status for status, _ in told]
    assert all(problem in said for (_, _, problem), (_, said) in zip(SCHEMAS.values(), told, strict=True))


TOO_LARGE: dict[str, dict[str, Any]] = {
    "openai-chat": {"type": "invalid_request_error"},
    "openai-responses": {"type": "invalid_request_error"},
    "anthropic": {"type": "request_too_large"},
    "gemini": {"code": 413},
}


@EACH_WIRE
@pytest.mark.parametrize("times", [1.01, 5])
def test_a_body_that_is_too_large_is_refused_in_the_protocols_form(
    wire: str, times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MOST_BYTES", 500_000)
    script = Script(ChatReply("Hi."))

    async def sent(base: str) -> tuple[int, Any]:
        body = {**with_tool(wire, {}), "more": "x" * int(500_000 * times)}
        async with httpx.AsyncClient() as client:
            fits = await client.post(base + PATHS[wire], json=with_tool(wire, {}))
            response = await client.post(base + PATHS[wire], json=body)
            return fits.status_code, (response.status_code, response.json()["error"])

    fits, (status, error) = run(script, sent)

    assert (200, 413, 1) == (fits, status, len(script.seen))
    assert TOO_LARGE[wire].items() <= error.items()
    assert error["message"] == "the request's body is larger than 500,000 bytes; send less"


LIMITS: dict[str, tuple[dict[str, Any], str]] = {
    "openai-chat": ({"max_completion_tokens": 2}, '"finish_reason":"length"'),
    "openai-responses": ({"max_output_tokens": 2}, '"incomplete_details":{"reason":"max_output_tokens"}'),
    "anthropic": ({"max_tokens": 2}, '"stop_reason":"max_tokens"'),
    "gemini": ({"generationConfig": {"maxOutputTokens": 2}}, '"finishReason":"MAX_TOKENS"'),
}
"""How each protocol sets a limit of tokens, and how it says that the limit ended a reply."""


@EACH_WIRE
def test_a_reply_is_cut_off_at_the_limit_that_the_request_sets(wire: str) -> None:
    setting, told = LIMITS[wire]

    async def answered(base: str) -> str:
        async with httpx.AsyncClient() as client:
            return (await client.post(base + PATHS[wire], json={**with_tool(wire, {}), **setting})).text

    cut, whole = (run(Script(ChatReply(said)), answered) for said in ("It is 5 m", "It is 5."))

    assert (True, True, False) == (told in cut, '"It is 5 "' in cut, "It is 5 m" in cut)
    assert (False, True) == (told in whole, '"It is 5."' in whole)
