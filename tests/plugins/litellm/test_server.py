"""The server in front of LiteLLM: streams, images, refusals and what it does not pass on."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest
from anthropic import Anthropic
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

pytest.importorskip("keval_litellm", reason="keval-litellm is not installed")

from keval.plugin import Endpoint, Wire
from keval_gateway import ChatReply, ChatRequest, ModelFault
from keval_gateway.protocols.protocol import frame
from keval_litellm import PROVIDERS
from keval_litellm.provider import _QUIET
from keval_litellm.server import message_events
from tests.end_to_end.servers.model import served
from tests.plugins.litellm.standins import AWS, bedrock, private_key, service_account, vertex_ai

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6300010000000500010d0a2db4"
        "0000000049454e44ae426082"
    )
).decode()
HELLO = [{"role": "user", "content": "Hello."}]
PATHS: dict[str, tuple[Wire, str]] = {
    "chat": ("openai-chat", "/chat/completions"),
    "responses": ("openai-responses", "/responses"),
    "messages": ("anthropic", "/v1/messages"),
}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": HELLO},
    "responses": {"input": "Hello."},
    "messages": {"messages": HELLO, "max_tokens": 100},
}
OWN = {"model": "hosted_vllm/some-model", **BODIES["chat"]}
GEMINI, CLAUDE = "vertex_ai/gemini-2.5-flash", "vertex_ai/claude-sonnet-4-5"
MODELS = (GEMINI, CLAUDE)
CHUNK = {
    "id": "1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "some-model",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "It stands"}, "finish_reason": None}],
}


@attrs.define
class Server:
    """LiteLLM's server, and what the stand-ins behind it were asked."""

    endpoint: Endpoint
    vendors: Vendors

    @property
    def asked(self) -> list[ChatRequest]:
        return self.vendors.asked

    def url(self, protocol: str) -> str:
        wire, path = PATHS[protocol]
        return f"{self.endpoint.urls[wire]}{path}"

    def post(self, protocol: str, model: str, key: str | None = None, **fields: Any) -> httpx.Response:
        body = {"model": model, **BODIES[protocol], **fields}
        headers = {"authorization": f"Bearer {key or self.endpoint.api_key}"}
        return httpx.post(self.url(protocol), json=body, headers=headers, timeout=30)


@attrs.define
class Vendors:
    """What stands in for vendors: a model behind Vertex AI and Bedrock, and a server of its own that fails."""

    asked: list[ChatRequest] = attrs.field(factory=list)
    fault: ModelFault | None = None
    begun: threading.Event = attrs.field(factory=threading.Event)
    ended: threading.Event = attrs.field(factory=threading.Event)

    def respond(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        if self.fault is not None:
            raise self.fault
        return ChatReply("It stands at 1,842 m.")

    async def fail(self, request: Request) -> Response:
        """Break a stream off, or wait for a client that hangs up."""
        if json.loads(await request.body()).get("stream"):
            return StreamingResponse(self._broken(), media_type="text/event-stream")
        self.begun.set()
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.ended.set()
        return Response()

    async def _broken(self) -> AsyncIterator[bytes]:
        yield frame(CHUNK)
        raise ConnectionError("the provider is gone")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    vendors, key = Vendors(), private_key()
    failing = Starlette(routes=[Route("/v1/chat/completions", vendors.fail, methods=["POST"])])
    with (
        pytest.MonkeyPatch.context() as patch,
        served(vertex_ai(vendors.respond, key)) as vertex,
        served(bedrock(vendors.respond)) as amazon,
        served(failing) as own,
        asyncio.Runner() as runner,
    ):
        for name, value in {
            "GOOGLE_APPLICATION_CREDENTIALS": service_account(tmp_path_factory.mktemp("account"), key, vertex),
            "VERTEXAI_PROJECT": "my-project",
            "VERTEXAI_LOCATION": "europe-west1",
            "VERTEXAI_API_BASE": vertex,
            **AWS,
            "AWS_BEDROCK_RUNTIME_ENDPOINT": amazon,
            "HOSTED_VLLM_API_BASE": f"{own}/v1",
        }.items():
            patch.setenv(name, value)
        opened = AsyncExitStack()
        endpoints = runner.run(opened.enter_async_context(PROVIDERS["litellm"].open([GEMINI], 0)))
        yield Server(endpoints[GEMINI], vendors)
        runner.run(opened.aclose())


@pytest.fixture
def server(running: Server) -> Server:
    running.asked.clear()
    running.vendors.fault = None
    return running


def events(reply: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


@pytest.mark.parametrize("model", MODELS)
def test_a_chat_completion_is_streamed_with_its_usage(server: Server, model: str) -> None:
    reply = server.post("chat", model, stream=True, stream_options={"include_usage": True})

    *chunks, done = events(reply)
    said = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert (200, "text/event-stream") == (reply.status_code, reply.headers["content-type"].partition(";")[0])
    assert ("It stands at 1,842 m.", "[DONE]") == (said, done)
    assert 0 < chunks[-1]["usage"]["prompt_tokens"]
    assert 0 < chunks[-1]["usage"]["completion_tokens"]


@pytest.mark.parametrize("protocol", PATHS)
def test_the_binary_events_of_bedrock_are_streamed_on(server: Server, protocol: str) -> None:
    reply = server.post(protocol, "bedrock/eu.amazon.nova-lite-v1:0", stream=True)

    assert (200, "text/event-stream") == (reply.status_code, reply.headers["content-type"].partition(";")[0])
    assert "It stands at 1,842 m." in reply.text


@pytest.mark.parametrize("model", MODELS)
def test_a_response_is_streamed_as_typed_events(server: Server, model: str) -> None:
    found = events(server.post("responses", model, stream=True))

    said = "".join(event["delta"] for event in found if event["type"] == "response.output_text.delta")
    assert ("response.created", "response.completed") == (found[0]["type"], found[-1]["type"])
    assert "It stands at 1,842 m." == said
    assert 0 < found[-1]["response"]["usage"]["output_tokens"]


@pytest.mark.parametrize("model", MODELS)
def test_a_message_is_streamed_as_anthropic_streams_it(server: Server, model: str) -> None:
    found = events(server.post("messages", model, stream=True))

    said = "".join(event["delta"].get("text", "") for event in found if event["type"] == "content_block_delta")
    assert ("message_start", "message_stop") == (found[0]["type"], found[-1]["type"])
    assert "It stands at 1,842 m." == said


@pytest.mark.parametrize("model", MODELS)
def test_an_image_reaches_the_model(server: Server, model: str) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    text = {"type": "text", "text": "What is it?"}

    chat = server.post("chat", model, messages=[{"role": "user", "content": [text, image]}])
    messages = server.post("messages", model, messages=[{"role": "user", "content": [text, shown]}])

    assert (200, 200) == (chat.status_code, messages.status_code), chat.text + messages.text
    first, second = ([media for message in request.messages for media in message.media] for request in server.asked)
    assert 1 == len(first)
    assert first == second


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PATHS)
def test_a_refusal_keeps_its_status_its_message_and_its_retry_after(
    server: Server, protocol: str, model: str, stream: bool
) -> None:
    server.vendors.fault = ModelFault(429, "slow down for a moment", retry_after=7)
    busy = server.post(protocol, model, stream=stream)
    server.vendors.fault = ModelFault(400, "a field is wrong")
    wrong = server.post(protocol, model, stream=stream)

    assert (429, "7") == (busy.status_code, busy.headers.get("retry-after"))
    assert "slow down for a moment" in busy.json()["error"]["message"]
    assert (400, None) == (wrong.status_code, wrong.headers.get("retry-after"))
    assert "a field is wrong" in wrong.json()["error"]["message"]
    assert 2 == len(server.asked)


@pytest.mark.parametrize("protocol", PATHS)
def test_a_request_cannot_lead_elsewhere(server: Server, protocol: str) -> None:
    reply = server.post(protocol, MODELS[0], api_base="http://127.0.0.1:1", vertex_credentials="/etc/passwd")

    told = "keval-litellm does not pass on api_base, vertex_credentials; leave it out"
    assert (400, told, []) == (reply.status_code, reply.json()["error"]["message"], server.asked)


def test_only_who_has_the_key_is_answered_and_only_the_paths_of_the_protocols(server: Server) -> None:
    refused = server.post("chat", MODELS[0], key="another")
    unknown = httpx.post(server.url("chat").replace("/openai/v1/", "/gemini/v1/"), json={})

    assert (401, 404, []) == (refused.status_code, unknown.status_code, server.asked)


def test_a_seed_is_left_out_where_the_vendor_takes_none_and_other_parameters_are_refused(server: Server) -> None:
    seeded = server.post("chat", CLAUDE, seed=7)
    refused = server.post("chat", CLAUDE, logit_bias={"50256": -100})

    message = refused.json()["error"]["message"]
    assert (200, 400) == (seeded.status_code, refused.status_code)
    assert "logit_bias" in message
    assert "drop_params" not in message


def test_a_client_that_hangs_up_ends_the_request_to_the_provider(server: Server) -> None:
    async def hang_up() -> None:
        async with httpx.AsyncClient(headers={"authorization": f"Bearer {server.endpoint.api_key}"}) as client:
            asking = asyncio.create_task(client.post(server.url("chat"), json=OWN))
            assert await asyncio.to_thread(server.vendors.begun.wait, 30)
            asking.cancel()
            await asyncio.wait([asking])

    asyncio.run(hang_up())

    assert server.vendors.ended.wait(10)


def test_a_stream_that_breaks_off_is_no_whole_one(server: Server) -> None:
    headers = {"authorization": f"Bearer {server.endpoint.api_key}"}
    lines: list[str] = []
    with (
        httpx.stream("POST", server.url("chat"), json={**OWN, "stream": True}, headers=headers) as reply,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        lines.extend(reply.iter_lines())

    assert 200 == reply.status_code
    assert "It stands" in lines[0]
    assert "event: error" in lines
    assert "data: [DONE]" not in lines


QUIET = """
import sys

def told(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect"):
        print(event, arguments)

sys.addaudithook(told)
import keval_litellm.server
"""


def test_nothing_is_fetched_when_the_server_starts(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-a-file\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", f"{QUIET}import os; print(os.environ.get('OPENAI_API_KEY'))"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**{k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"}, **_QUIET},
        timeout=60,
        check=True,
    )

    assert "None\n" == done.stdout


def test_a_streamed_message_is_the_whole_one_in_pieces() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call-1", "name": "look_up", "input": {"question": "How?"}},
    ]
    message = {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": blocks,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }

    body = b"".join(frame(event, event["type"]) for event in message_events(message))

    async def answer(request: Request) -> Response:
        return Response(body, media_type="text/event-stream")

    # The vendor's own SDK puts the pieces together.
    with served(Starlette(routes=[Route("/v1/messages", answer, methods=["POST"])])) as base:
        asked = Anthropic(base_url=base, api_key="a-key").messages.stream(model="m", max_tokens=9, messages=[])
        with asked as stream:
            found = stream.get_final_message().model_dump()

    assert blocks == [
        {name: value for name, value in block.items() if name in given}
        for block, given in zip(found["content"], blocks, strict=True)
    ]
    assert ("tool_use", 7, 5) == (
        found["stop_reason"],
        found["usage"]["input_tokens"],
        found["usage"]["output_tokens"],
    )
