"""What goes out, what comes in, and what many requests on one client share: the same for both vendors."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from keval.plugin import PreflightError
from tests.plugins.clients.conftest import FINE, Vendor, http, serve


def head(request: bytes) -> tuple[str, dict[str, str], Any]:
    """The first line, the headers and the body of a request."""
    first, *lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    return first, {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}, body(request)


def body(request: bytes) -> Any:
    return json.loads(request.partition(b"\r\n\r\n")[2])


KEYS = ("authorization", "x-api-key")


def test_a_request_has_the_key_the_headers_and_the_body_and_the_reply_comes_as_it_is(vendor: Vendor) -> None:
    async def scenario() -> tuple[object, Sequence[bytes]]:
        async with serve(http()) as scene:
            return await vendor.ask(f"{scene.url}/base", {"x-keval-trial": "t1"}), scene.asked

    reply, (asked,) = asyncio.run(scenario())

    first, headers, sent = head(asked)
    assert (reply, first, sent) == (FINE, "POST /base/ask HTTP/1.1", {"question": "Why?"})
    key = {"openai": ("authorization", "Bearer s3cret"), "anthropic": ("x-api-key", "s3cret")}[vendor.name]
    assert {("x-keval-trial", "t1"), key} == {each for each in headers.items() if each[0] in (*KEYS, "x-keval-trial")}


def test_a_compressed_reply_is_read(vendor: Vendor) -> None:
    packed = gzip.compress(json.dumps(FINE).encode(), mtime=0)

    assert vendor.answered(http(packed, "200 OK", "content-encoding: gzip")) == FINE


def test_a_redirect_is_followed_with_the_request(vendor: Vendor) -> None:
    async def scenario() -> tuple[object, Sequence[bytes]]:
        answers = iter([http(b"", "307 Temporary Redirect", "location: /there"), http()])

        async def answer() -> bytes:
            return next(answers)

        async with serve(answer) as scene:
            return await vendor.ask(scene.url), scene.asked

    reply, (_, second) = asyncio.run(scenario())

    first, _, sent = head(second)
    assert (reply, first, sent) == (FINE, "POST /there HTTP/1.1", {"question": "Why?"})


def test_no_cookie_goes_back_to_a_host_with_a_name_or_without(vendor: Vendor) -> None:
    async def scenario(host: str) -> list[bytes]:
        async with serve(http(FINE, "200 OK", "set-cookie: who=me; Path=/")) as scene:
            client = vendor.client(f"http://{host}:{scene.port}")
            for _ in range(2):
                await client.post("/ask", {}, {})
            await client.aclose()
            return scene.asked

    for host in ("localhost", "127.0.0.1"):
        asked = asyncio.run(scenario(host))

        assert ["cookie" in head(request)[1] for request in asked] == [False, False]


PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_the_proxy_of_the_environment_is_used(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch, variable: str, scheme: str
) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)

    async def scenario() -> list[bytes]:
        async with serve(http()) as proxy, serve(http()) as direct:
            monkeypatch.setenv(variable, f"{scheme}127.0.0.1:{proxy.port}")
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            await vendor.ask("http://model.example/v1")
            await vendor.ask(direct.url)
            assert len(direct.asked) == 1
            return proxy.asked

    (asked,) = asyncio.run(scenario())

    assert head(asked)[0] == "POST http://model.example/v1/ask HTTP/1.1"


OF_ANOTHER_KIND = (
    "the environment variable all_proxy (or ALL_PROXY) must be the address of an http:// or https:// proxy, as no"
    " other kind can be used; correct it, or name model.example in no_proxy"
)
NONE = "ALL_PROXY must be the address of a proxy, such as http://proxy.example:3128; correct the variable, or unset it"


@pytest.mark.parametrize(
    ("proxy", "told"),
    [
        ("socks5://u:s3cret@127.0.0.1:9", OF_ANOTHER_KIND),
        ("http://:9", NONE),
        ("http://127.0.0.1:999999", NONE),
        ("[u:s3cret", NONE),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told_before_anything_is_sent(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch, proxy: str, told: str
) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", proxy)

    with pytest.raises(PreflightError) as caught:
        vendor.client("http://model.example/v1")

    assert str(caught.value) == told


def test_150_requests_wait_for_no_connection(vendor: Vendor) -> None:
    at_once = 150

    async def scenario() -> list[object]:
        everyone = asyncio.Barrier(at_once)

        async def answer() -> bytes:
            await everyone.wait()
            return http()

        async with asyncio.timeout(30), serve(answer) as scene:
            client = vendor.client(scene.url)
            replies = await asyncio.gather(*(client.post("/ask", {}, {}) for _ in range(at_once)))
            await client.aclose()
            return list(replies)

    assert asyncio.run(scenario()) == [FINE] * at_once


def test_requests_one_after_the_other_share_a_connection(vendor: Vendor) -> None:
    connections: list[object] = []

    async def scenario() -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.append(writer)
            while await reader.read(100_000):
                writer.write(http())
            writer.close()

        async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
            client = vendor.client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            for _ in range(3):
                await client.post("/ask", {}, {})
            await client.aclose()

    asyncio.run(scenario())

    assert len(connections) == 1


def test_a_request_that_is_cancelled_leaves_neither_a_task_nor_a_connection(vendor: Vendor) -> None:
    async def scenario() -> tuple[bytes, set[Any], object]:
        asked: asyncio.Queue[asyncio.StreamReader] = asyncio.Queue()
        silent = True

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            if silent:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{")
                await asked.put(reader)
                await over.wait()
            else:
                writer.write(http())
            writer.close()

        over = asyncio.Event()
        async with asyncio.timeout(30), await asyncio.start_server(connected, "127.0.0.1", 0) as server:
            client = vendor.client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            before = asyncio.all_tasks()
            waiting = asyncio.create_task(client.post("/ask", {}, {}))
            reader = await asked.get()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            rest = await reader.read()  # returns when the client's end is closed
            left = {task for task in asyncio.all_tasks() - before if "connected" not in repr(task)}
            silent = False
            over.set()
            reply = await client.post("/ask", {}, {})
            await client.aclose()
            return rest, left, reply

    assert asyncio.run(scenario()) == (b"", set(), FINE)


@pytest.mark.parametrize("asks", [0, 1])
def test_a_client_can_be_closed_twice(vendor: Vendor, asks: int) -> None:
    async def scenario() -> None:
        async with serve(http()) as scene:
            client = vendor.client(scene.url)
            for _ in range(asks):
                await client.post("/ask", {}, {})
            await client.aclose()
            await client.aclose()

    asyncio.run(scenario())


def test_closing_one_client_leaves_another_of_the_same_endpoint_well(vendor: Vendor) -> None:
    async def scenario() -> object:
        async with serve(http()) as scene:
            mine, yours = vendor.client(scene.url), vendor.client(scene.url)
            await mine.post("/ask", {}, {})
            await yours.post("/ask", {}, {})
            await mine.aclose()
            reply = await yours.post("/ask", {}, {})
            await yours.aclose()
            return reply

    assert asyncio.run(scenario()) == FINE


def test_what_agents_and_judges_import_at_the_start_imports_no_http_client_and_no_sdk() -> None:
    names = ("aiohttp", "anthropic", "httpx", "httpx2", "openai", "pydantic")
    code = f"import sys, keval_clients\nprint([name for name in {names} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_what_the_sdks_read_of_the_environment_is_sent_to_nobody_but_as_the_provider_says(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, f"c4nary-{name}")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "Authorization: c4nary\nX-Team: c4nary")

    async def scenario() -> bytes:
        async with serve(http()) as scene:
            await vendor.ask(scene.url)
            return scene.asked[0]

    sent = asyncio.run(scenario())

    assert (True, False) == (b"s3cret" in sent, b"c4nary" in sent)


@pytest.mark.parametrize("given", [None, 10**30, 0.1, "ü\u2028 null", {"a": [None, True]}])
def test_a_body_is_written_as_it_is(vendor: Vendor, given: object) -> None:
    async def scenario() -> object:
        async with serve(http()) as scene:
            client = vendor.client(scene.url)
            await client.post("/ask", {"given": given}, {})
            await client.aclose()
            return body(scene.asked[0])

    assert {"given": given} == asyncio.run(scenario())


@pytest.mark.parametrize("given", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_not_sent_as_another(vendor: Vendor, given: float) -> None:
    async def scenario() -> Sequence[bytes]:
        async with serve(http()) as scene:
            client = vendor.client(scene.url)
            with pytest.raises(ValueError, match="JSON compliant"):
                await client.post("/ask", {"given": [given, None]}, {})
            await client.aclose()
            return scene.asked

    assert [] == asyncio.run(scenario())
