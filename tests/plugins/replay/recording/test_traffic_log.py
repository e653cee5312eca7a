"""The traffic log: what passed, in the order of beginnings and ends, however an exchange ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from keval.plugin import ModelError, TrialError
from keval.records.cassettes import ModelTraffic, ServerTraffic, TrafficError
from keval.records.models import Asker, ModelRequest, ModelResponse
from keval_replay.recorder import TrafficLog

ASKER = Asker("agent", "a", "a/none/q1/1", 1, 1)
REQUEST = ModelRequest("m", "openai-chat", "POST", "/chat/completions", {"x": "y"}, b"{}", ASKER)
HEADERS = {"content-type": "text/event-stream", "retry-after-ms": "5", "x-request-id": "r1", "x-other": "z"}


def answers(*chunks: bytes, error: BaseException | None = None) -> Callable[[ModelRequest], Awaitable[ModelResponse]]:
    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
        if error is not None:
            raise error

    async def send(request: ModelRequest) -> ModelResponse:
        assert request is REQUEST
        return ModelResponse(200, HEADERS, body())

    return send


def refuses(error: Exception) -> Callable[[ModelRequest], Awaitable[ModelResponse]]:
    async def send(request: ModelRequest) -> ModelResponse:
        raise error

    return send


async def read(log: TrafficLog, send: Callable[[ModelRequest], Awaitable[ModelResponse]]) -> list[bytes]:
    response = await log.ask(REQUEST, send)
    return [chunk async for chunk in response.chunks]


def kept(log: TrafficLog) -> ModelTraffic:
    (found,) = log.traffic()
    assert isinstance(found, ModelTraffic)
    return found


def test_a_response_is_passed_on_and_kept_chunk_by_chunk_with_the_headers_that_matter() -> None:
    log = TrafficLog(now=lambda: 12.5, clock=iter((1.0, 1.25)).__next__)

    passed = asyncio.run(read(log, answers(b"a", b"bc")))

    found = kept(log)
    assert ([b"a", b"bc"], (b"a", b"bc")) == (passed, found.chunks)
    assert (200, ASKER, True, 12.5) == (found.status, found.asker, found.request is REQUEST, found.at)
    assert {"content-type": "text/event-stream", "retry-after-ms": "5", "x-request-id": "r1"} == found.headers
    assert (1, 2, 0.25, None) == (found.began, found.ended, found.seconds, found.error)


def test_exchanges_that_overlap_are_numbered_together() -> None:
    async def scenario(log: TrafficLog) -> None:
        server = log.server("weather", 2)
        asked = await log.ask(REQUEST, answers(b"a"))
        call = server.begin("call", "tools/call", {"name": "t"})
        told = server.begin("told", "notifications/progress", {"progress": 1}, during=call)
        server.end(told)
        await asked.read()
        server.end(call, {"content": []})
        server.begin("request", "resources/read")

    log = TrafficLog()
    asyncio.run(scenario(log))

    model, call, told, lost = log.traffic()
    assert [(1, 5), (2, 6), (3, 4), (7, None)] == [(each.began, each.ended) for each in (model, call, told, lost)]
    assert isinstance(call, ServerTraffic)
    assert isinstance(told, ServerTraffic)
    assert ("weather", "call", "tools/call", {"name": "t"}, {"content": []}, 2) == (
        *(call.server, call.kind, call.method, call.params, call.result, call.attempt),
    )
    assert (2, None) == (told.during, told.result)
    assert TrafficError("abandoned") == lost.error


ERRORS: list[tuple[Exception, TrafficError]] = [
    (
        ModelError("no answer: reset", retry_after=3.0),
        TrafficError("unreachable", "no answer: reset", "connection", details={"retry_after": 3.0}),
    ),
    (
        ModelError("no answer", status=500),
        TrafficError("unreachable", "no answer", "http_500", details={"status": 500}),
    ),
    (
        TrialError("too large", stage="model", kind="reply_too_large", retryable=True),
        TrafficError("failed", "too large", "reply_too_large", details={"stage": "model", "retryable": True}),
    ),
    (ValueError("odd"), TrafficError("broken", "odd", details={"type": "ValueError"})),
]


@pytest.mark.parametrize(("error", "told"), ERRORS)
def test_an_error_is_raised_and_kept(error: Exception, told: TrafficError) -> None:
    before, midway = TrafficLog(), TrafficLog()
    for log, send in ((before, refuses(error)), (midway, answers(b"a", error=error))):
        with pytest.raises(type(error), match=str(error)):
            asyncio.run(read(log, send))

    assert (told, None, (), 2) == (kept(before).error, kept(before).status, kept(before).chunks, kept(before).ended)
    assert (told, 200, (b"a",), 2) == (kept(midway).error, kept(midway).status, kept(midway).chunks, kept(midway).ended)


def test_what_is_cancelled_or_not_read_to_its_end_is_abandoned() -> None:
    async def cancelled(log: TrafficLog) -> None:
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def send(request: ModelRequest) -> ModelResponse:
            return await never  # type: ignore[no-any-return]  # it is never set

        task = asyncio.create_task(log.ask(REQUEST, send))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async def left(log: TrafficLog) -> None:
        response = await log.ask(REQUEST, answers(b"a", b"b"))
        await anext(aiter(response.chunks))

    first, second = TrafficLog(), TrafficLog()
    asyncio.run(cancelled(first))
    asyncio.run(left(second))

    told = [(each.status, each.chunks, each.error, each.ended, each.seconds) for each in map(kept, (first, second))]
    abandoned = TrafficError("abandoned")
    assert [(None, (), abandoned, None, None), (200, (b"a",), abandoned, None, None)] == told
