"""The way of a client's requests through the middleware of a run, in process: the same for both vendors."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import attrs
import pytest

import keval_clients
from keval.errors import MiddlewareError
from keval.plugin import Endpoint, ModelError, ModelRequest, ModelResponse, Next, TrialError
from keval.records.models import Exchange
from keval_clients.client import Client
from tests.plugins.clients.conftest import FINE, Answer, Vendor, http, serve

KEYS = {"authorization", "x-api-key", "x-goog-api-key"}
PATHS = {
    "openai": {"/chat/completions": "openai-chat", "/responses": "openai-responses", "/models": "openai-chat"},
    "anthropic": {"/v1/messages": "anthropic"},
}


@attrs.frozen
class Asked:
    """What came of a client's requests, what the middleware saw, and what arrived."""

    outcomes: Sequence[Any]
    seen: Sequence[ModelRequest]
    arrived: Sequence[bytes]

    @property
    def outcome(self) -> Any:
        (outcome,) = self.outcomes
        return outcome


async def passing(request: ModelRequest, send: Next) -> ModelResponse:
    return await send(request)


def client(vendor: Vendor, url: str, exchange: Exchange | None) -> Client:
    endpoint = Endpoint("the-model", {}, "s3cret", exchange=exchange)
    made: Client = getattr(keval_clients, f"{vendor.name}_client")(url, endpoint)
    return made


def ask(vendor: Vendor, answer: Answer, exchange: Exchange = passing, *paths: str, base: str = "/base") -> Asked:
    """Post to each path at once, over one client."""
    seen: list[ModelRequest] = []

    async def watched(request: ModelRequest, send: Next) -> ModelResponse:
        seen.append(request)
        return await exchange(request, send)

    async def scenario() -> Asked:
        async with asyncio.timeout(30), serve(answer) as scene:
            asking = client(vendor, f"{scene.url}{base}", watched)
            posts = [asking.post(path, {"question": "Why?"}, {"x-keval-asker": "t"}) for path in paths or ("/ask",)]
            outcomes = await asyncio.gather(*posts, return_exceptions=True)
            await asking.aclose()
            return Asked(outcomes, seen, scene.asked)

    return asyncio.run(scenario())


@pytest.mark.parametrize("base", ["", "/", "/base", "/base/", "/b%20se"])
def test_a_request_passes_whole_but_for_the_key(vendor: Vendor, base: str) -> None:
    asked = ask(vendor, http(), passing, "/ask?beta=true", base=base)

    (request,), (arrived,) = asked.seen, asked.arrived
    head = arrived.partition(b"\r\n\r\n")[0].decode().lower()
    assert FINE == asked.outcome
    assert ("POST", "/ask?beta=true", "the-model") == (request.method, request.path, request.model)
    assert {"question": "Why?"} == json.loads(request.body)
    assert f"post {base.rstrip('/').lower()}/ask?beta=true http/1.1" == head.partition("\r\n")[0]
    assert "s3cret" in head
    assert 1 == head.count("\r\nhost:") == head.count("\r\ncontent-length:")
    assert not request.headers.keys() & {*KEYS, "host", "content-length", "connection", "accept-encoding"}
    assert "s3cret" not in repr(request) + repr(request.body)
    assert ("t", "application/json") == (request.headers["x-keval-asker"], request.headers["content-type"])


def test_the_wire_is_known_by_the_path(vendor: Vendor) -> None:
    asked = ask(vendor, http(), passing, *PATHS[vendor.name])

    assert PATHS[vendor.name] == {request.path: request.wire for request in asked.seen}


def test_the_middleware_may_answer_in_the_endpoints_place(vendor: Vendor) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"said": '
        yield b'"Nothing."}'

    async def canned(request: ModelRequest, send: Next) -> ModelResponse:
        return ModelResponse(200, {"content-type": "application/json", "content-length": "1"}, chunks())

    asked = ask(vendor, http(), canned)

    assert ({"said": "Nothing."}, []) == (asked.outcome, asked.arrived)


def test_the_middleware_may_ask_again(vendor: Vendor) -> None:
    answers = iter([http({}, "429 Too Many Requests", "retry-after: 0"), http()])

    async def answer() -> bytes:
        return next(answers)

    async def again(request: ModelRequest, send: Next) -> ModelResponse:
        busy = await send(request)
        assert (429, "0") == (busy.status, busy.headers["retry-after"])
        return await send(request)

    asked = ask(vendor, answer, again)

    first, second = asked.arrived
    assert (FINE, first) == (asked.outcome, second)


def test_the_middleware_may_change_request_and_response(vendor: Vendor) -> None:
    async def changing(request: ModelRequest, send: Next) -> ModelResponse:
        headers = {**request.headers, "x-new": "yes", "content-length": "1", "authorization": "mine"}
        response = await send(attrs.evolve(request, path="/other", headers=headers, body=b'{"question": "Who?"}'))
        body = json.loads(await response.read())
        return ModelResponse.of(response.status, response.headers, json.dumps({**body, "and": "more"}).encode())

    asked = ask(vendor, http(), changing)

    (arrived,) = asked.arrived
    head, _, body = arrived.partition(b"\r\n\r\n")
    assert {**FINE, "and": "more"} == asked.outcome
    assert (b"POST /base/other HTTP/1.1", b'{"question": "Who?"}') == (head.partition(b"\r\n")[0], body)
    assert b"x-new: yes" in head.lower()
    assert b"mine" not in head


def test_a_compressed_response_is_handed_over_unpacked(vendor: Vendor) -> None:
    packed = gzip.compress(json.dumps(FINE).encode(), mtime=0)
    told: list[Any] = []

    async def reading(request: ModelRequest, send: Next) -> ModelResponse:
        response = await send(request)
        told.append((json.loads(await response.read()), "content-encoding" in response.headers))
        return response

    asked = ask(vendor, http(packed, "200 OK", "content-encoding: gzip"), reading)

    assert (FINE, [(FINE, False)]) == (asked.outcome, told)


def test_a_refusal_is_the_same_error_as_without(vendor: Vendor) -> None:
    asked = ask(vendor, http({"error": {"message": "not today"}}, "429 Too Many Requests", "retry-after: 7"))

    error = asked.outcome
    assert isinstance(error, ModelError)
    assert (429, "rate_limit", 7.0) == (error.status, error.kind, error.retry_after)
    assert "not today" in str(error)


def test_middleware_that_raises_is_a_502_that_names_it(vendor: Vendor) -> None:
    async def failing(request: ModelRequest, send: Next) -> ModelResponse:
        raise MiddlewareError("the middleware 'budget' failed: ValueError: out of order")

    asked = ask(vendor, http(), failing)

    error = asked.outcome
    assert isinstance(error, ModelError)
    assert (502, True, []) == (error.status, error.retryable, asked.arrived)
    assert "the middleware 'budget' failed: ValueError: out of order" in str(error)


def test_an_endpoint_that_breaks_off_is_told_to_the_middleware_and_then_to_the_caller(vendor: Vendor) -> None:
    told: list[str] = []

    async def reporting(request: ModelRequest, send: Next) -> ModelResponse:
        try:
            return await send(request)
        except ModelError as error:
            told.append(str(error))
            raise

    asked = ask(vendor, b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{", reporting)

    error = asked.outcome
    assert isinstance(error, ModelError)
    assert (None, "connection", True) == (error.status, error.kind, error.retryable)
    assert [str(error)] == told
    assert 1 == str(error).count("gave no answer")


def test_a_response_that_middleware_breaks_off_is_a_failed_connection(vendor: Vendor) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"said": '
        raise ValueError("out of order")

    async def breaking(request: ModelRequest, send: Next) -> ModelResponse:
        return ModelResponse(200, {}, chunks())

    error = ask(vendor, http(), breaking).outcome

    assert isinstance(error, TrialError)
    assert ("connection", True) == (error.kind, "out of order" in str(error))


def test_a_redirect_is_followed_beneath_the_middleware(vendor: Vendor) -> None:
    answers = iter([http({}, "307 Temporary Redirect", "location: /elsewhere"), http()])

    async def answer() -> bytes:
        return next(answers)

    asked = ask(vendor, answer)

    lines = [arrived.partition(b"\r\n")[0] for arrived in asked.arrived]
    assert (FINE, ["/ask"]) == (asked.outcome, [request.path for request in asked.seen])
    assert [b"POST /base/ask HTTP/1.1", b"POST /elsewhere HTTP/1.1"] == lines


def test_fifty_requests_at_once_each_have_an_answer(vendor: Vendor) -> None:
    async def own(request: ModelRequest, send: Next) -> ModelResponse:
        response = await send(request)
        return ModelResponse.of(response.status, response.headers, json.dumps({"path": request.path}).encode())

    paths = [f"/ask/{number}" for number in range(50)]

    asked = ask(vendor, http(), own, *paths)

    assert [{"path": path} for path in paths] == asked.outcomes
