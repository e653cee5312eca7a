"""A server that answers HTTP as nobody should: too much, too slowly, packed to burst, or with a way to somewhere else.

The first part of a request's path says how. Everything is written as fast as it is read, and never ends.
"""

from __future__ import annotations

import asyncio
import gzip
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import attrs

_BLOCK = 2**20


def _bomb(layers: int) -> bytes:
    """10 GB of zeros, packed so often."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = head + block * 10_000
    for _ in range(layers - 1):
        packed = gzip.compress(packed)
    return packed


def _head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode()


_EVENTS = "content-type: text/event-stream"
_JSON = "content-type: application/json"
_CHUNKED = "transfer-encoding: chunked"
_EMPTY_BLOCK = b"\0\0\0\xff\xff"
_PLAIN = b"x" * 2**16

ANSWERS = {
    "body": (_head(_JSON), _PLAIN),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x-more: more\r\n" * 1000),
    "header": (b"HTTP/1.1 200 OK\r\nx-much: ", _PLAIN),
    "chunk": (_head(_JSON, _CHUNKED) + b"fffffffffff\r\n", _PLAIN),
    "extension": (_head(_JSON, _CHUNKED) + b"1;", _PLAIN),
    "trailers": (_head(_JSON, _CHUNKED) + b"2\r\n{}\r\n0\r\n", b"x-more: more\r\n" * 1000),
    "interim": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000),
    "line": (_head(_EVENTS) + b"data: ", _PLAIN),
    "events": (_head(_EVENTS), b"data: {}\n\n" * 1000),
    "comments": (_head(_EVENTS), b": still here\n" * 1000),
    "gzip": (_head(_JSON, "content-encoding: gzip") + _bomb(1), b""),
    "gzip-events": (_head(_EVENTS, "content-encoding: gzip") + _bomb(1), b""),
    "gzip-gzip": (_head(_JSON, "content-encoding: gzip, gzip") + _bomb(2), b""),
    "gzip-refusal": (_head(_JSON, "content-encoding: gzip", status="400 Bad Request") + _bomb(1), b""),
    "deflate-nothing": (_head(_JSON, "content-encoding: deflate"), _EMPTY_BLOCK * 10_000),
}
"""How an answer begins, and what follows again and again."""


@attrs.define
class Hostile:
    """Where the server is, the first lines of the requests that came, and how many bytes went out."""

    port: int = 0
    asked: list[str] = attrs.field(factory=list)
    sent: int = 0
    location: str = ""
    """Where `redirect-STATUS` leads."""

    def url(self, way: str) -> str:
        return f"http://127.0.0.1:{self.port}/{way}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head.split(b"\r\n", 1)[0].decode())
            way = self.asked[-1].split("/")[1].split(" ")[0]
            async for piece in self._pieces(way, self.asked[-1]):
                writer.write(piece)
                self.sent += len(piece)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _pieces(self, way: str, first: str) -> AsyncIterator[bytes]:
        if way.startswith("redirect"):
            status, location = way.partition("-")[2], f"location: {self.location}"
            yield _head(location, "content-length: 0", "connection: close", status=f"{status} Elsewhere")
            return
        if first.startswith(("GET", "HEAD")):
            yield _head("content-length: 0", "connection: close", status="405 No")
            return
        if way in ("drip", "drip-events"):
            yield _head(_EVENTS if way == "drip-events" else _JSON)
            while True:
                yield b" " if way == "drip" else b":\n"
                await asyncio.sleep(0.2)
        begin, more = ANSWERS[way]
        yield begin
        while more:
            yield more


def agent(kind: str, url: str) -> tuple[dict[str, object], dict[str, str]]:
    """An agent of a config that asks this URL, and its environment."""
    key = "sk-abcdefgh"
    match kind:
        case "openai" | "gadk" | "ms":
            return {"type": kind, "model": "openai/m"}, {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": key}
        case "anthropic":
            return {"type": kind, "model": "anthropic/m"}, {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}
        case "http" if any(part in url for part in ("events", "line", "comments")):
            return {"type": kind, "url": url, "probe": False, "events": "sse", "answer": "x"}, {}
        case _:
            return {"type": kind, "url": url, "probe": False}, {}


@contextmanager
def hostile() -> Iterator[Hostile]:
    """Serve on loopback, in a thread of its own."""
    scene, ready = Hostile(), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with await asyncio.start_server(scene.answer, "127.0.0.1", 0) as server:
            scene.port = server.sockets[0].getsockname()[1]
            ready.set()
            await stop.wait()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        thread = threading.Thread(target=lambda: runner.run(serve()), daemon=True)
        thread.start()
        ready.wait(10)
        try:
            yield scene
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(10)
