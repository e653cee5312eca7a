"""How an endpoint that refuses, breaks off or talks nonsense shows: the same for both vendors."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from keval.plugin import ModelError, TrialError
from tests.plugins.clients.conftest import FINE, Answer, Vendor, http, serve


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        ("400 Bad Request", "http_400", False),
        ("401 Unauthorized", "http_401", False),
        ("404 Not Found", "http_404", False),
        ("408 Request Timeout", "http_408", True),
        ("429 Too Many Requests", "rate_limit", True),
        ("500 Internal Server Error", "http_500", True),
        ("529 Overloaded", "http_529", True),
    ],
)
def test_a_refusal_has_its_status_and_is_asked_once(vendor: Vendor, status: str, kind: str, retryable: bool) -> None:
    async def scenario() -> tuple[ModelError, int]:
        async with serve(http({"error": {"message": "not today"}}, status)) as scene:
            with pytest.raises(ModelError, match="not today") as caught:
                await vendor.ask(scene.url)
            return caught.value, len(scene.asked)

    error, asked = asyncio.run(scenario())

    assert (error.status, error.kind, error.retryable) == (int(status[:3]), kind, retryable)
    assert (error.stage, error.retry_after, asked) == ("model", None, 1)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_refusal_says_how_long_to_wait_in_seconds(vendor: Vendor, status: str) -> None:
    with pytest.raises(ModelError) as caught:
        vendor.answered(http({}, status, "retry-after: 7"))

    assert caught.value.retry_after == 7.0


def test_a_refusal_says_until_when_to_wait(vendor: Vendor) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    with pytest.raises(ModelError) as caught:
        vendor.answered(http({}, "429 Too Many Requests", f"retry-after: {date}"))

    assert caught.value.retry_after == pytest.approx(3600, abs=60)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "not today", "code": "closed"}}, "not today (closed)"),
        ([{"error": {"message": "not today"}}], "not today"),
        ({"error": "not today"}, "not today"),
        ({"message": "not today"}, "not today"),
        ({"detail": "not today"}, "not today"),
        ({"detail": [{"loc": ["body", "day", 0], "msg": "not today"}]}, "body.day.0: not today"),
        ({"message": {"detail": [{"loc": ["day"], "msg": "no"}, {"loc": ["hour"], "msg": "no"}]}}, "day: no; hour: no"),
        (b"<html><head><style>h1 {}</style></head>\n<h1>Not\ntoday</h1></html>", "Not today"),
        (b"", "without a text"),
        ({"error": "Use v1/responses."}, "Use v1/responses; agents ask that API with `api: responses`"),
    ],
    ids=str,
)
def test_a_refusal_of_any_shape_is_told_with_the_request(vendor: Vendor, body: object, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        vendor.answered(http(body, "400 Bad Request", "x-ms-request-id: r7"))

    assert f"the model's endpoint answered with status 400: {words} (request r7)" == str(caught.value)


def test_of_a_long_refusal_only_the_beginning_is_kept(vendor: Vendor) -> None:
    with pytest.raises(ModelError, match="not today") as caught:
        vendor.answered(http({"error": {"message": "not today" * 10_000}}, "400 Bad Request"))

    assert len(str(caught.value)) < 1100


def test_an_endpoint_that_is_not_there_gives_no_answer(vendor: Vendor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(ModelError, match=f"gave no answer: .* Cannot connect to host 127.0.0.1:{port}") as caught:
        asyncio.run(vendor.ask(f"http://127.0.0.1:{port}"))

    assert (caught.value.status, caught.value.kind, caught.value.retryable) == (None, "connection", True)


def test_an_endpoint_without_tls_gives_no_answer_over_https(vendor: Vendor) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(http())
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            await vendor.ask(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    with pytest.raises(ModelError, match=r"gave no answer: .*SSL"):
        asyncio.run(scenario())


BROKEN = {
    "no byte": (b"", "Server disconnected"),
    "another protocol": (b"220 mail.example ESMTP\r\n\r\n", "Bad status line"),
    "half a head": (b"HTTP/1.1 200 OK\r\ncontent-ty", "ServerDisconnected"),
    "half a body": (b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{", "not completed"),
    "half a chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{", "not completed"),
    "no chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nwhat?\r\n{}\r\n0\r\n\r\n", "chunk size"),
    "too large a header": (b"HTTP/1.1 200 OK\r\nx-much: " + b"x" * 100_000 + b"\r\n\r\n{}", "more than 8190 bytes"),
    "no header": (b"HTTP/1.1 200 OK\r\nwhat?\r\n\r\n{}", "header"),
    "no gzip": (http(b"{}", "200 OK", "content-encoding: gzip"), "content-encoding: gzip"),
    "half a refusal": (b"HTTP/1.1 500 No\r\ncontent-length: 99999\r\n\r\n{", "not completed"),
    "a refusal that is no gzip": (http(b"{}", "500 No", "content-encoding: gzip"), "content-encoding: gzip"),
}


@pytest.mark.parametrize(("sent", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_what_breaks_can_be_tried_again(vendor: Vendor, sent: bytes, told: str) -> None:
    with pytest.raises(ModelError, match=f"(?s)^the model's endpoint gave no answer: .*{told}") as caught:
        vendor.answered(sent)

    assert (caught.value.status, caught.value.kind, caught.value.retryable) == (None, "connection", True)


NONSENSE = {
    "no byte": http(b""),
    "a web page": http(b"<html>It works!</html>"),
    "half an object": http(b'{"said": "Bec'),
    "no UTF-8": http(b'{"said": "\xff"}'),
    "a list": http([FINE]),
    "a text": http("Because."),
    "null": http(None),
    "too deep": http(b"[" * 100_000),
    "not a number": http(b'{"said": NaN}'),
    "too large a number": http(b'{"said": 1e999}'),
    "too many digits": http(b'{"said": ' + b"1" * 5000 + b"}"),
}


@pytest.mark.parametrize("sent", NONSENSE.values(), ids=NONSENSE.keys())
def test_what_is_no_object_is_no_reply(vendor: Vendor, sent: bytes) -> None:
    with pytest.raises(TrialError, match=r"^the model's endpoint answered with something that is no reply: ") as caught:
        vendor.answered(sent)

    assert (caught.value.stage, caught.value.kind, caught.value.retryable) == ("model", "bad_reply", True)
    assert len(str(caught.value)) < 1100


@pytest.mark.parametrize("broken", [BROKEN["half a body"][0], BROKEN["no gzip"][0]], ids=["dropped", "no gzip"])
def test_after_what_broke_the_client_is_well(vendor: Vendor, broken: bytes) -> None:
    answers = iter([broken, http()])

    async def answer() -> bytes:
        return next(answers)

    async def scenario(told: Answer) -> object:
        async with serve(told) as scene:
            client = vendor.client(scene.url)
            with pytest.raises(ModelError):
                await client.post("/ask", {}, {})
            reply = await client.post("/ask", {}, {})
            await client.aclose()
            return reply

    assert asyncio.run(scenario(answer)) == FINE
