"""The model proxy: what a client sends reaches the endpoint by way of the exchange, with the key that only it holds."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import attrs
import httpx2
import pytest
from anthropic import APIStatusError, AsyncAnthropic
from openai import OpenAIError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from keval import Usage
from keval.plugin import (
    MAX_OUTPUT_TOKENS,
    REFUSAL,
    Endpoint,
    FinishReason,
    Model,
    ModelRequest,
    ModelResponse,
    Next,
    Wire,
)
from keval.records.models import ASKER_HEADER, Asker, Exchange
from keval.seams.infrastructure import AttemptKey, ModelProxy, ProxyRoute
from keval_clients import refused
from keval_gateway import ChatReply, Respond, wire_urls
from keval_gateway.app import build_app
from keval_gateway.proxy import model_proxy
from keval_loopback.serving import serve
from tests.plugins.gateway.test_protocols import ASKS, BOTH, EACH_MODE, EACH_WIRE, Script

KEY = "sk-canary"
KEYS = ("key-of-one", "key-of-another")
"""Of attempts."""
ASKER = Asker("agent", "a")
WIRES: tuple[Wire, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
KEY_HEADERS = {
    "openai-chat": ("authorization", f"Bearer {KEY}"),
    "openai-responses": ("authorization", f"Bearer {KEY}"),
    "anthropic": ("x-api-key", KEY),
    "gemini": ("x-goog-api-key", KEY),
}
ANSWER = {"content-type": "application/json"}
BODY = b'{"model": "weather"}'

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]
Meter: TypeAlias = Callable[[ModelRequest, Usage, FinishReason | None], object]


async def passing(request: ModelRequest, send: Next) -> ModelResponse:
    return await send(request)


@attrs.define
class Watching:
    """An exchange that keeps the requests."""

    seen: list[ModelRequest] = attrs.field(factory=list)

    async def __call__(self, request: ModelRequest, send: Next) -> ModelResponse:
        self.seen.append(request)
        return await send(request)


@asynccontextmanager
async def proxied(
    *urls: str, exchange: Exchange = passing, meter: Meter | None = None
) -> AsyncIterator[list[Endpoint]]:
    """A proxy in front of gateways at these base URLs."""
    keys = {key: AttemptKey(key) for key in KEYS}
    routes = [ProxyRoute(ASKER, Endpoint("weather", wire_urls(url), KEY), exchange, meter, keys.get) for url in urls]
    async with model_proxy().open(routes) as endpoints:
        yield list(endpoints)


@asynccontextmanager
async def upstream(answer: Answer, exchange: Exchange = passing) -> AsyncIterator[tuple[Endpoint, httpx2.AsyncClient]]:
    """A proxy in front of a server that answers every request so, and a client with the placeholder for a key."""
    methods = ["GET", "POST"]
    async with (
        serve(Starlette(routes=[Route("/{path:path}", answer, methods=methods)])) as base,
        proxied(base, exchange=exchange) as (endpoint,),
        httpx2.AsyncClient(headers={"authorization": f"Bearer {endpoint.api_key}"}, timeout=30) as client,
    ):
        yield endpoint, client


def base_of(endpoint: Endpoint) -> str:
    return endpoint.urls["anthropic"].removesuffix("/anthropic")


def chat(endpoint: Endpoint) -> str:
    return f"{endpoint.urls['openai-chat']}/chat/completions"


def run(scenario: Awaitable[Any]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(60):
            return await scenario

    return asyncio.run(limited())


def through(respond: Respond, use: Callable[[Endpoint], Awaitable[Any]], exchange: Exchange = passing) -> Any:
    """Use a proxy in front of a gateway that admits the real key alone."""

    async def scenario() -> Any:
        async with serve(build_app(respond, token=KEY)) as base, proxied(base, exchange=exchange) as (endpoint,):
            return await use(endpoint)

    return run(scenario())


@EACH_WIRE
@EACH_MODE
def test_every_sdk_gets_through_it_what_it_gets_without(wire: str, stream: bool) -> None:
    script, watching = Script(BOTH), Watching()

    said = through(script, lambda at: ASKS[wire](base_of(at), stream, key=at.api_key), watching)

    direct = run(_direct(BOTH, wire, stream))
    (request,), (arrived,) = watching.seen, script.seen
    assert direct == said
    assert (wire, "weather", "POST", ASKER) == (request.wire, request.model, request.method, request.asker)
    assert _path(wire, stream) == request.path
    assert {**arrived.headers, **request.headers} == arrived.headers
    assert dict([KEY_HEADERS[wire]]).items() <= arrived.headers.items()
    assert "a%2Fb" == request.headers["x-keval-trial"]


def _path(wire: str, stream: bool) -> str:
    """What follows the base URL that each vendor's SDK takes."""
    paths = {"openai-chat": "/chat/completions", "openai-responses": "/responses", "anthropic": "/v1/messages"}
    call = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return paths.get(wire, f"/v1beta/models/weather:{call}")


async def _direct(reply: ChatReply, wire: str, stream: bool) -> Any:
    async with serve(build_app(Script(reply))) as base:
        return await ASKS[wire](base, stream)


USAGE = Usage(120, 34, 20, 4)


@EACH_WIRE
@EACH_MODE
def test_it_counts_the_tokens_of_each_reply_and_knows_by_the_key_whose_they_are(wire: str, stream: bool) -> None:
    metered: list[tuple[str, Usage]] = []

    def meter(request: ModelRequest, usage: Usage, finish: FinishReason | None) -> None:
        assert finish is None
        metered.append((request.headers[ASKER_HEADER], usage))

    async def scenario() -> None:
        script = Script(attrs.evolve(BOTH, usage=USAGE))
        async with serve(build_app(script)) as base, proxied(base, meter=meter) as (endpoint,):
            for key in KEYS:
                reached = Model("p", "m", endpoint).access("openai-chat", {ASKER_HEADER: key})
                await ASKS[wire](base_of(endpoint), stream, key=reached.api_key)

    run(scenario())

    told = attrs.evolve(USAGE, reasoning_tokens=None) if wire == "anthropic" else USAGE  # the gateway does not tell it
    assert [(key, told) for key in KEYS] == metered


@EACH_WIRE
@EACH_MODE
@pytest.mark.parametrize(("cut", "finish"), [("length", MAX_OUTPUT_TOKENS), ("refusal", REFUSAL)])
def test_it_tells_what_ended_a_reply_before_its_time(wire: str, stream: bool, cut: Any, finish: FinishReason) -> None:
    metered: list[FinishReason | None] = []

    async def scenario() -> None:
        def meter(request: ModelRequest, usage: Usage, finish: FinishReason | None) -> None:
            metered.append(finish)

        script = Script(ChatReply("It is", cut=cut))
        async with serve(build_app(script)) as base, proxied(base, meter=meter) as (endpoint,):
            with suppress(OpenAIError, RuntimeError):  # of an SDK that takes such a stream for an error
                await ASKS[wire](base_of(endpoint), stream, key=endpoint.api_key)

    run(scenario())

    assert [finish] == metered


def test_a_reply_that_does_not_tell_its_tokens_has_an_unknown_number_of_them() -> None:
    metered: list[Usage] = []

    async def scenario() -> None:
        async def answer(request: Request) -> Response:
            return JSONResponse({"choices": []}, 200 if metered else 500)

        def meter(request: ModelRequest, usage: Usage, finish: FinishReason | None) -> None:
            metered.append(usage)

        async with (
            serve(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])) as base,
            proxied(base, meter=meter) as (endpoint,),
            httpx2.AsyncClient(headers={"authorization": f"Bearer {endpoint.api_key}"}) as client,
        ):
            await client.post(chat(endpoint), content=BODY)
            refused = [*metered]
            metered.append(USAGE)
            await client.post(chat(endpoint), content=BODY)
        assert [] == refused

    run(scenario())

    assert [USAGE, Usage()] == metered


@EACH_WIRE
def test_neither_the_client_nor_the_exchange_holds_the_key(wire: str) -> None:
    watching, held = Watching(), list[str]()

    async def use(endpoint: Endpoint) -> None:
        held.append(repr(attrs.asdict(endpoint)))
        await ASKS[wire](base_of(endpoint), False, key=endpoint.api_key)
        held.append(endpoint.api_key)

    through(Script(ChatReply("Fine.")), use, watching)

    _, placeholder = held
    assert KEY not in "".join(held)
    for request in watching.seen:
        assert {KEY, placeholder}.isdisjoint(request.headers.values())
        assert not request.headers.keys() & {"authorization", "x-api-key", "x-goog-api-key", "host", "content-length"}
        assert placeholder not in f"{request.path} {request.body!r}"


@EACH_WIRE
@pytest.mark.parametrize("fails", ["exchange", "endpoint"])
def test_what_fails_is_a_502_in_the_protocols_own_form(wire: str, fails: str) -> None:
    async def failing(request: ModelRequest, send: Next) -> ModelResponse:
        raise ValueError("out of order")

    async def scenario() -> Any:
        async with proxied("http://127.0.0.1:1", exchange=failing if fails == "exchange" else passing) as (endpoint,):
            with pytest.raises(Exception, match=r"out of order|gave no answer: ClientConnectorError") as caught:
                await ASKS[wire](base_of(endpoint), False, key=endpoint.api_key)
            return caught.value

    error = run(scenario())

    assert 502 == (error.code if wire == "gemini" else error.status_code)


def test_the_first_event_arrives_before_the_endpoint_sends_the_second() -> None:
    async def scenario() -> list[bytes]:
        first = asyncio.Event()

        async def events() -> AsyncIterator[bytes]:
            yield b"data: one\n\n"
            await first.wait()
            yield b"data: two\n\n"

        async def answer(request: Request) -> Response:
            return StreamingResponse(events(), media_type="text/event-stream")

        async with (
            upstream(answer) as (endpoint, client),
            client.stream("POST", chat(endpoint), content=BODY) as response,
        ):
            arrived = []
            async for chunk in response.aiter_raw():
                arrived.append(chunk)
                first.set()
            return arrived

    assert [b"data: one\n\n", b"data: two\n\n"] == run(scenario())


@pytest.mark.parametrize("begun", [False, True], ids=["before it answers", "while it answers"])
def test_a_client_that_hangs_up_ends_the_request_to_the_endpoint(begun: bool) -> None:
    async def scenario() -> bool:
        asked, ended = asyncio.Event(), asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            try:
                yield b"data: one\n\n"
                asked.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def silent(request: Request) -> Response:
            await request.body()
            asked.set()
            assert "http.disconnect" == (await request.receive())["type"]
            ended.set()
            return Response()

        async def streaming(request: Request) -> Response:
            return StreamingResponse(endless())

        async with upstream(streaming if begun else silent) as (endpoint, client):
            asking = asyncio.create_task(client.post(chat(endpoint), content=BODY))
            await asked.wait()
            asking.cancel()
            await ended.wait()
        return ended.is_set()

    assert run(scenario())


def test_a_long_response_takes_little_memory() -> None:
    chunk, chunks = b"x" * 65_536, 300

    async def scenario() -> tuple[int, int]:
        async def body() -> AsyncIterator[bytes]:
            for _ in range(chunks):
                yield chunk

        async def answer(request: Request) -> Response:
            return StreamingResponse(body())

        async with (
            upstream(answer) as (endpoint, client),
            client.stream("POST", chat(endpoint), content=BODY) as response,
        ):
            tracemalloc.start()
            try:
                received = 0
                async for part in response.aiter_raw():
                    received += len(part)
                return received, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    received, peak = run(scenario())

    assert len(chunk) * chunks == received
    assert peak < 4_000_000


def test_every_route_leads_to_its_own_endpoint_with_its_own_key() -> None:
    async def scenario() -> list[int]:
        async with (
            serve(build_app(Script(ChatReply("One.")))) as one,
            serve(build_app(Script(ChatReply("Two.")))) as two,
            proxied(one, two) as (first, second),
        ):
            assert first.urls["gemini"] != second.urls["gemini"]
            said = [(await ASKS["gemini"](base_of(at), False, key=at.api_key))["text"] for at in (first, second)]
            assert ["One.", "Two."] == said
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            async with httpx2.AsyncClient() as client:
                crossed = {"authorization": f"Bearer {second.api_key}"}
                return [
                    (await client.post(chat(first), json=body, headers=headers)).status_code
                    for headers in ({}, crossed, {"authorization": f"Bearer {KEY}"})
                ]

    assert [401, 401, 401] == run(scenario())


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/nowhere/openai/v1/chat/completions", {}, 404),
        ("", {}, 404),
        ("{secret}/elsewhere", {}, 403),
        ("{secret}/openai/v1/chat/completions", {"host": "evil.example"}, 421),
    ],
)
def test_what_is_not_for_it_goes_nowhere(path: str, headers: dict[str, str], status: int) -> None:
    async def scenario() -> tuple[int, int]:
        asked = []

        async def answer(request: Request) -> Response:
            asked.append(request)
            return Response()

        async with upstream(answer) as (endpoint, client):
            root, _, secret = base_of(endpoint).rpartition("/")
            response = await client.post(f"{root}{path.format(secret=f'/{secret}')}", headers=headers)
            assert response.json()["error"]["message"]
            return response.status_code, len(asked)

    assert (status, 0) == run(scenario())


def test_headers_that_matter_pass_and_those_of_a_connection_do_not() -> None:
    sent = {
        "x-request-id": "r1",
        "x-ratelimit-remaining-tokens": "7",
        "retry-after": "3",
        "content-encoding": "gzip",
        "set-cookie": "a=b",
        "location": "http://elsewhere.example",
        "keep-alive": "timeout=1",
    }

    async def scenario() -> tuple[httpx2.Response, dict[str, str]]:
        arrived: dict[str, str] = {}

        async def answer(request: Request) -> Response:
            arrived.update(request.headers)
            return Response(gzip.compress(b'"packed"'), headers={**sent, **ANSWER})

        async with upstream(answer) as (endpoint, client):
            headers = {"x-stainless-os": "Linux", "te": "trailers", "cookie": "a=b", "accept-encoding": "identity"}
            return await client.post(chat(endpoint), content=BODY, headers=headers), arrived

    response, arrived = run(scenario())

    assert '"packed"' == response.text
    kept = {"x-request-id", "x-ratelimit-remaining-tokens", "retry-after"}
    assert {name: sent[name] for name in kept} == {n: v for n, v in response.headers.items() if n in sent}
    assert ("application/json", "Linux") == (response.headers["content-type"], arrived["x-stainless-os"])
    assert not arrived.keys() & {"te", "cookie"}
    assert f"Bearer {KEY}" == arrived["authorization"]


def test_the_exchange_may_answer_by_itself_ask_twice_and_change_what_is_asked() -> None:
    async def playing(request: ModelRequest, send: Next) -> ModelResponse:
        if request.wire == "openai-responses":
            return ModelResponse.of(418, {"content-length": "7", "x-who": "me"}, b"short and stout")
        first = await send(attrs.evolve(request, body=b"first", headers={**request.headers, "x-new": "yes"}))
        assert b"first yes" == await first.read()
        return await send(attrs.evolve(request, body=b"second"))

    async def scenario() -> tuple[httpx2.Response, httpx2.Response]:
        async def answer(request: Request) -> Response:
            return Response(await request.body() + b" " + request.headers.get("x-new", "no").encode())

        async with upstream(answer, playing) as (endpoint, client):
            url = f"{endpoint.urls['openai-responses']}/responses"
            return await client.post(url, content=BODY), await client.post(chat(endpoint), content=BODY)

    own, passed = run(scenario())

    assert (418, "short and stout", "me") == (own.status_code, own.text, own.headers["x-who"])
    assert "second no" == passed.text


def test_a_stream_that_breaks_off_tells_why_and_does_not_end_as_if_it_were_whole() -> None:
    async def breaking(request: ModelRequest, send: Next) -> ModelResponse:
        async def chunks() -> AsyncIterator[bytes]:
            yield b'event: ping\ndata: {"type": "ping"}\n\n'
            raise ValueError("out of order")

        return ModelResponse(200, {"content-type": "text/event-stream"}, chunks())

    async def scenario() -> tuple[str, str]:
        async with proxied("http://127.0.0.1:1", exchange=breaking) as (endpoint,):
            async with AsyncAnthropic(base_url=endpoint.urls["anthropic"], api_key=endpoint.api_key) as sdk:
                with pytest.raises(APIStatusError) as told:
                    async for _ in await sdk.messages.create(model="weather", max_tokens=1, messages=[], stream=True):
                        pass
            async with httpx2.AsyncClient(headers={"x-api-key": endpoint.api_key}) as client:
                with pytest.raises(httpx2.RemoteProtocolError) as broken:
                    await client.post(f"{endpoint.urls['anthropic']}/v1/messages", content=BODY)
            return str(told.value), str(broken.value)

    told, broken = run(scenario())

    assert "the response broke off: ValueError: out of order" in told
    assert "incomplete" in broken


def test_a_stream_that_breaks_off_within_an_event_is_cut_there() -> None:
    begun = b'event: ping\ndata: {"type": "pi'

    async def breaking(request: ModelRequest, send: Next) -> ModelResponse:
        async def chunks() -> AsyncIterator[bytes]:
            yield begun
            raise ValueError("out of order")

        return ModelResponse(200, {"content-type": "text/event-stream"}, chunks())

    read: list[bytes] = []

    async def scenario() -> None:
        async with (
            proxied("http://127.0.0.1:1", exchange=breaking) as (endpoint,),
            httpx2.AsyncClient(headers={"x-api-key": endpoint.api_key}) as client,
            client.stream("POST", f"{endpoint.urls['anthropic']}/v1/messages", content=BODY) as response,
        ):
            async for chunk in response.aiter_raw():
                read.append(chunk)

    with pytest.raises(httpx2.RemoteProtocolError):
        run(scenario())
    assert [begun] == read


@pytest.mark.parametrize("told", [True, False], ids=["of a known length", "as it comes"])
def test_a_reply_that_is_too_large_is_refused_or_cut_off(told: bool) -> None:
    async def large(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(1000):
                yield b" " * 100_000

        return StreamingResponse(chunks(), headers={"content-length": "100000000"} if told else {})

    async def scenario() -> str:
        async with (
            serve(Starlette(routes=[Route("/{path:path}", large, methods=["POST"])])) as base,
            model_proxy().open(
                [ProxyRoute(ASKER, Endpoint("weather", wire_urls(base), KEY, max_reply_bytes=10**6), passing)]
            ) as (endpoint,),
            httpx2.AsyncClient(headers={"authorization": f"Bearer {endpoint.api_key}"}, timeout=30) as client,
        ):
            try:
                response = await client.post(chat(endpoint), content=BODY)
            except httpx2.RemoteProtocolError:
                return "cut off"
            return f"{response.status_code} {response.json()['error']['message']}"

    outcome = run(scenario())

    words = "502 the model's reply has more than 1,000,000 bytes; raise execution.max_reply_bytes if that is right"
    assert outcome == words if told else outcome == "cut off"


def test_a_redirect_is_followed_on_the_same_host_alone() -> None:
    async def scenario() -> tuple[httpx2.Response, httpx2.Response, list[str]]:
        asked: list[str] = []

        async def elsewhere(request: Request) -> Response:
            asked.append(request.url.path)
            return Response()

        async with serve(Starlette(routes=[Route("/{path:path}", elsewhere, methods=["POST"])])) as other:

            async def answer(request: Request) -> Response:
                if request.url.path.endswith("/completions"):
                    return RedirectResponse(f"{request.url}/")
                if request.url.path.endswith("/responses"):
                    return RedirectResponse(f"{other}/responses")
                return Response(await request.body() + request.headers["authorization"].encode())

            async with upstream(answer) as (endpoint, client):
                near = await client.post(chat(endpoint), content=BODY)
                return near, await client.post(f"{endpoint.urls['openai-responses']}/responses", content=BODY), asked

    near, far, asked = run(scenario())

    assert (200, f"{BODY.decode()}Bearer {KEY}") == (near.status_code, near.text)
    assert (502, []) == (far.status_code, asked)
    assert "/responses', which is not asked, as it would see the request" in far.json()["error"]["message"]


def test_loopback_is_reached_past_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    async def scenario() -> str:
        async def answer(request: Request) -> Response:
            return Response(b"here")

        async with (
            serve(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])) as base,
            proxied(base) as (endpoint,),
            httpx2.AsyncClient(trust_env=False, headers={"x-api-key": endpoint.api_key}) as client,
        ):
            return (await client.post(chat(endpoint), content=BODY)).text

    assert "here" == run(scenario())


def test_an_endpoint_speaks_the_wires_of_the_one_behind_it() -> None:
    async def scenario() -> Endpoint:
        real = Endpoint("m", {"anthropic": "http://127.0.0.1:1"}, KEY, simulated=True)
        async with model_proxy().open([ProxyRoute(ASKER, real, passing)]) as (endpoint,):
            return endpoint

    endpoint = run(scenario())

    assert ["anthropic"] == [*endpoint.urls]
    assert ("m", True, True, None) == (endpoint.model, endpoint.simulated, endpoint.wants_trial, endpoint.exchange)


def test_it_is_a_model_proxy_and_naming_it_imports_no_web_server() -> None:
    code = (
        "import sys\nfrom keval_gateway.proxy import model_proxy\nmodel_proxy()\n"
        "print([name for name in ('starlette', 'uvicorn', 'httpx2', 'asyncio') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert isinstance(model_proxy(), ModelProxy)
    assert "[]" == done.stdout.strip()


def test_a_framework_that_leaves_out_what_the_model_thought_is_told_the_way_out() -> None:
    async def answer(request: Request) -> Response:
        return JSONResponse({"error": {"message": "The `reasoning_content` must be passed back."}}, 400)

    async def scenario() -> tuple[int, str]:
        async with upstream(answer) as (endpoint, client):
            response = await client.post(chat(endpoint), content=BODY)
            return response.status_code, response.json()["error"]["message"]

    status, told = run(scenario())

    assert (400, "The `reasoning_content` must be passed back.") == (status, told.partition("; ")[0])
    assert "take the agent `openai`" in told


@pytest.mark.parametrize("path", ["openai-chat/chat/completions", "anthropic/v1/messages"])
def test_an_endpoint_that_gives_no_answer_is_no_status_for_a_framework_either(path: str) -> None:
    async def scenario() -> httpx2.Response:
        async with (
            serve(Starlette()) as base,
            proxied(base.replace("http", "https")) as (endpoint,),  # to a server that does not speak it
            httpx2.AsyncClient(headers={"authorization": f"Bearer {endpoint.api_key}"}) as client,
        ):
            wire = path.partition("/")[0]
            url = f"{endpoint.urls[wire]}/{path.partition('/')[2]}"  # type: ignore[index]
            return await client.post(url, content=BODY)

    response = run(scenario())

    error = refused(response.status_code, response.headers, response.content)
    assert (502, None, "connection", True) == (response.status_code, error.status, error.kind, error.retryable)
    assert str(error).startswith("the model's endpoint gave no answer: ClientConnector")
    assert not str(error).endswith("_error)")


def test_a_framework_reads_the_text_of_a_stream_whose_content_are_parts() -> None:
    parts = [
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}],
        [{"type": "text", "text": "Pa"}],
        "ris",
    ]
    events = [f"data: {json.dumps({'choices': [{'delta': {'content': part}}]})}\n\n" for part in parts]

    async def answer(request: Request) -> Response:
        async def pieces() -> AsyncIterator[str]:
            for event in [*events, "data: [DONE]\n\n"]:
                yield event[:40]
                yield event[40:]

        return StreamingResponse(pieces(), media_type="text/event-stream")

    async def scenario() -> str:
        async with upstream(answer) as (endpoint, client):
            return (await client.post(chat(endpoint), content=BODY)).text

    *told, last, end = run(scenario()).split("\n\n")

    assert ["", "Pa", "ris"] == [json.loads(event[6:])["choices"][0]["delta"]["content"] for event in told]
    assert ("data: [DONE]", "") == (last, end)
