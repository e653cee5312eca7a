"""Streamed replies: each event as it arrives, and the same errors as for a whole reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from keval.plugin import ModelError, TrialError
from tests.plugins.clients.conftest import FINE, Answer, Vendor, http, serve

EVENTS = "content-type: text/event-stream; charset=utf-8"
BROKEN = b"HTTP/1.1 200 OK\r\n" + EVENTS.encode() + b'\r\ncontent-length: 99999\r\n\r\nevent: a\ndata: {"n": 1}\n\n'


def streamed(vendor: Vendor, answer: Answer) -> list[Any]:
    """What arrives of a stream; an error stands at its end."""

    async def scenario() -> list[Any]:
        arrived: list[Any] = []

        async def collect(events: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
            async for event in events:
                arrived.append(event)
            return {}

        async with serve(answer) as scene:
            client = vendor.client(scene.url)
            try:
                async with asyncio.timeout(30):
                    await client.stream("/ask", {"question": "Why?"}, {}, lambda body: None, collect)
            except TrialError as error:
                arrived.append(error)
            finally:
                await client.aclose()
        return arrived

    return asyncio.run(scenario())


def test_events_are_told_until_the_mark_of_the_end(vendor: Vendor) -> None:
    body = b': hello\n\nevent: a\ndata: {"n": 1}\n\nid: 7\nevent: a\ndata: {"n": "\xc3\xbc \\ud800"}\n\n'
    if vendor.name == "openai":
        body += b'data: [DONE]\n\ndata: {"n": 3}\n\n'

    assert [{"n": 1}, {"n": "ü ?"}] == streamed(vendor, http(body, "200 OK", EVENTS))


def test_what_breaks_after_the_mark_of_the_end_is_nothing() -> None:
    broken = BROKEN + b"data: [DONE]\n\n"

    assert [{"n": 1}] == streamed(Vendor("openai"), broken)


def test_a_reply_that_is_not_streamed_is_the_reply(vendor: Vendor) -> None:
    async def scenario() -> dict[str, Any]:
        async with serve(http()) as scene:
            client = vendor.client(scene.url)
            reply = await client.stream("/ask", {"stream": True}, {}, lambda body: None, lambda events: unused())
            await client.aclose()
            return reply

    async def unused() -> dict[str, Any]:
        raise AssertionError("there are no events")

    assert FINE == asyncio.run(scenario())


def test_an_event_is_told_before_the_next_one_is_sent(vendor: Vendor) -> None:
    async def scenario() -> list[dict[str, Any]]:
        arrived: list[dict[str, Any]] = []
        told = asyncio.Event()

        async def collect(events: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
            async for event in events:
                arrived.append(event)
                told.set()
            return {}

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 200 OK\r\n{EVENTS}\r\n\r\n".encode() + b'event: a\ndata: {"n": 1}\n\n')
            await told.wait()
            writer.write(b'event: a\ndata: {"n": 2}\n\n')
            writer.close()

        async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
            client = vendor.client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            async with asyncio.timeout(30):
                await client.stream("/ask", {}, {}, lambda body: None, collect)
            await client.aclose()
        return arrived

    assert [{"n": 1}, {"n": 2}] == asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "before", "kind", "said"),
    [
        (BROKEN, [{"n": 1}], "connection", "the model's endpoint gave no answer: ClientPayloadError"),
        (http(b'{"error": "busy"}', "429 Too Many", "retry-after: 7"), [], "rate_limit", "busy"),
        (http(b"<html>Hello</html>", "200 OK", "content-type: text/html"), [], "bad_reply", "<html>Hello</html>"),
        (http(b"event: a\ndata: {]\n\n", "200 OK", EVENTS), [], "bad_reply", "{]"),
        (http(b"event: a\ndata: [1]\n\n", "200 OK", EVENTS), [], "bad_reply", "[1]"),
    ],
)
def test_a_stream_fails_as_a_whole_reply_does(
    vendor: Vendor, answer: bytes, before: Sequence[Any], kind: str, said: str
) -> None:
    *arrived, error = streamed(vendor, answer)

    assert isinstance(error, TrialError)
    assert (before, kind, True) == (arrived, error.kind, error.retryable)
    assert said in str(error)
    assert (7.0 if kind == "rate_limit" else None) == error.retry_after
    assert isinstance(error, ModelError) == (kind != "bad_reply")
