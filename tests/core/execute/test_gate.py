"""The gate in front of an endpoint, without a run around it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from keval.config.evaluation import Retry
from keval.errors import ModelError, OutageError
from keval.execute.models.gate import EndpointGate, RequestScope
from keval.execute.models.load import EndpointLoad
from keval.records.models import ModelRequest, ModelResponse
from keval.seams.distribution import Ending


def test_an_endpoint_that_is_down_is_given_up_when_its_time_is_over_and_not_at_the_next_probe() -> None:
    async def nobody(request: ModelRequest) -> ModelResponse:
        raise ConnectionError("nobody listens")

    async def asked() -> float:
        retry = Retry(max_outage_seconds=0.2, initial_backoff_seconds=0)
        gate = EndpointGate(EndpointLoad("some", retry), retry, random.Random(0))
        loop = asyncio.get_running_loop()
        began = loop.time()
        request = ModelRequest("some", "openai-chat", "POST", "/chat", {}, b"")
        with pytest.raises(OutageError, match=r"has been down for 0\.2 s and has never answered"):
            await asyncio.gather(*(gate.ask(request, nobody, _asking(number)) for number in range(3)))
        return loop.time() - began

    # The first probe is due after a second.
    assert asyncio.run(asked()) < 0.9


def test_an_endpoint_that_is_asked_anew_is_given_up_after_three_refusals_in_a_row_again() -> None:
    async def given_up() -> list[bool]:
        load = EndpointLoad("some", Retry())
        await _ended(load, "answered", "0")
        first = [await _ended(load, "rejected", asker) for asker in "123"]
        load.reopen()
        return [*first, *[await _ended(load, "rejected", asker) for asker in "456"]]

    assert [False, False, True] * 2 == asyncio.run(given_up())


def test_a_stream_that_tells_of_a_refusal_waits_for_no_place_and_ends_who_waits_for_one() -> None:
    async def told() -> list[str]:
        load = EndpointLoad("some", Retry(), limit=1)
        gate = EndpointGate(load, load.retry, random.Random(0))
        await load.admit()
        waiting = asyncio.create_task(load.admit())
        await asyncio.sleep(0)
        async with asyncio.timeout(1):
            return [str(each) for each in await asyncio.gather(gate.deny("no credit"), waiting, return_exceptions=True)]

    assert ["the endpoint of some at an unknown address refuses to answer: no credit"] * 2 == asyncio.run(told())


@pytest.mark.parametrize("status", [400, 408, 409, 418, 425, 429, 499, 500, 501, 503, 505, 520, 529, 600])
def test_a_status_is_repeated_below_the_agent_where_the_trial_would_be_attempted_again(status: int) -> None:
    responses = [ModelResponse.of(status, {}, b"not now"), ModelResponse.of(200, {}, b"{}")]

    retryable = ModelError("not now", status=status).retryable

    assert (200 if retryable else status) == asyncio.run(_asked(responses)).status


def test_a_stream_can_be_asked_for_again_until_its_first_event_is_whole() -> None:
    def broken() -> Iterator[bytes]:
        yield b": OPENROUTER PROCESSING\n\n"
        yield b'data: {"choi'
        raise ConnectionError("it broke off")

    event = [b": OPENROUTER PROCESSING\n\n", b'data: {"choi', b'ces": []}\n\n', b"data: [DONE]\n\n"]

    async def read() -> bytes:
        return await (await _asked([_stream(broken()), _stream(event)])).read()

    assert b"".join(event) == asyncio.run(read())


def test_an_error_that_begins_a_stream_is_seen_after_a_comment_and_in_pieces() -> None:
    event = [b": OPENROUTER PROCESSING\n\n", b'data: {"error": {"code"', b': 401, "message": "no key"}}\n', b"\n"]

    with pytest.raises(OutageError, match="HTTP 401: no key"):
        asyncio.run(_asked([_stream(event)]))


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("error", "again"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, True),
        ({"code": 503, "message": "no instance"}, True),
        ({"code": "server_error", "message": "sorry"}, True),
        ({"code": 400, "message": "too long"}, False),
        ({"code": "content_filter", "type": "invalid_request_error", "message": "no"}, False),
        ("in words", False),
    ],
)
def test_an_error_that_passes_is_repeated_with_status_200_too(error: object, again: bool, streams: bool) -> None:
    failed = json.dumps({"type": "error", "error": error}).encode()
    first = _stream([b"event: error\ndata: " + failed + b"\n\n"]) if streams else ModelResponse.of(200, {}, failed)
    second = ModelResponse.of(200, {}, b"{}")

    assert (second if again else first) is asyncio.run(_asked([first, second]))


def test_an_error_with_status_200_that_does_not_pass_reaches_the_agent_whole() -> None:
    event = b'data: {"error": {"code": 503, "message": "no instance"}}\n\n'

    async def read() -> bytes:
        return await (await _asked([_stream([event, b"data: [DONE]\n\n"]) for _ in range(5)])).read()

    assert event + b"data: [DONE]\n\n" == asyncio.run(read())


@pytest.mark.parametrize("kind", ["text/event-stream", "Text/Event-Stream; charset=utf-8"])
@pytest.mark.parametrize("begin", [b"data: {}\n\n", b": " + 20_000 * b"x"])
def test_a_stream_is_passed_on_when_its_first_event_is_there_or_is_too_long_for_an_error(
    begin: bytes, kind: str
) -> None:
    def begun() -> Iterator[bytes]:
        yield begin
        raise AssertionError("it was read further")

    assert 200 == asyncio.run(_asked([_stream(begun(), kind)])).status


def _stream(chunks: Iterable[bytes], kind: str = "text/event-stream") -> ModelResponse:
    async def arriving() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return ModelResponse(200, {"content-type": kind}, arriving())


async def _asked(responses: list[ModelResponse]) -> ModelResponse:
    """Return the response to a request that the gate sends, of which each gets the next one of these."""

    async def send(request: ModelRequest) -> ModelResponse:
        return responses.pop(0)

    retry = Retry(initial_backoff_seconds=0)
    gate = EndpointGate(EndpointLoad("some", retry), retry, random.Random(0))
    return await gate.ask(ModelRequest("some", "openai-chat", "POST", "/chat/completions", {}, b""), send, _asking(0))


async def _ended(load: EndpointLoad, ending: Ending, asker: str) -> bool:
    """Let a request be admitted and end so, and return whether the endpoint was given up."""
    await load.admit()
    return (await load.leave(ending, asker, "HTTP 403: no access")).given_up is not None


def _asking(number: int) -> RequestScope:
    return RequestScope(id=str(number))
