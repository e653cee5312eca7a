"""Streamed replies: each event as it arrives, and the same errors as for a whole reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from keval.plugin import ModelError, TrialError
from keval_clients.client import event_data
from tests.plugins.clients.conftest import Answer, Vendor, http, serve

EVENTS = "content-type: text/event-stream; charset=utf-8"


def streamed(vendor: Vendor, answer: Answer) -> list[Any]:
    """What arrives of a stream; an error stands at its end."""

    async def scenario() -> list[Any]:
        arrived: list[Any] = []
        async with serve(answer) as scene:
            client = vendor.client(scene.url)
            try:
                async with asyncio.timeout(30), aclosing(client.stream("/ask", {"question": "Why?"}, {})) as events:
                    async for event in events:
                        arrived.append(event)
            except TrialError as error:
                arrived.append(error)
            finally:
                await client.aclose()
        return arrived

    return asyncio.run(scenario())


def test_events_are_told_until_the_mark_of_the_end(vendor: Vendor) -> None:
    body = b': hello\n\nevent: a\ndata: {"n": 1}\n\nid: 7\n\ndata: {"n": "\xc3\xbc \\ud800"}\n\n'
    body += b'data: [DONE]\n\ndata: {"n": 3}\n\n'

    assert [{"n": 1}, {"n": "ü ?"}] == streamed(vendor, http(body, "200 OK", EVENTS))


def test_an_event_is_told_before_the_next_one_is_sent(vendor: Vendor) -> None:
    async def scenario() -> list[dict[str, Any]]:
        arrived: list[dict[str, Any]] = []
        told = asyncio.Event()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 200 OK\r\n{EVENTS}\r\n\r\n".encode() + b'data: {"n": 1}\n\n')
            await told.wait()
            writer.write(b'data: {"n": 2}\n\n')
            writer.close()

        async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
            client = vendor.client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            async with asyncio.timeout(30):
                async for event in client.stream("/ask", {}, {}):
                    arrived.append(event)
                    told.set()
            await client.aclose()
        return arrived

    assert [{"n": 1}, {"n": 2}] == asyncio.run(scenario())


BROKEN = b"HTTP/1.1 200 OK\r\n" + EVENTS.encode() + b'\r\ncontent-length: 99999\r\n\r\ndata: {"n": 1}\n\n'


@pytest.mark.parametrize(
    ("answer", "before", "kind", "said"),
    [
        (BROKEN, [{"n": 1}], "connection", "the model's endpoint gave no answer: ClientPayloadError"),
        (http(b'{"error": "busy"}', "429 Too Many", "retry-after: 7"), [], "rate_limit", "busy"),
        (http(b"<html>Hello</html>", "200 OK", "content-type: text/html"), [], "bad_reply", "<html>Hello</html>"),
        (http(b"data: {]\n\n", "200 OK", EVENTS), [], "bad_reply", "{]"),
        (http(b"data: [1]\n\n", "200 OK", EVENTS), [], "bad_reply", "[1]"),
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


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_are_read_whatever_ends_a_line_and_however_they_are_cut(end: bytes, size: int) -> None:
    body = b"\n\ndata: a\ndata:b\ndata\n\nevent: x\ndata: c\n\ndata: lost".replace(b"\n", end)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async def read() -> list[bytes]:
        return [data async for data in event_data(chunks())]

    assert [b"a\nb\n", b"c"] == asyncio.run(read())
