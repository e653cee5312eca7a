"""A model's endpoint down to its bytes, and the client of either vendor before it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import pytest

import keval_clients
from keval.plugin import Endpoint
from keval_clients.client import Client

Answer: TypeAlias = bytes | Callable[[], Awaitable[bytes]]

FINE = {"said": "Because."}


def http(body: object = FINE, status: str = "200 OK", *headers: str) -> bytes:
    """An answer that is as it should be."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(content)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + content


@attrs.define
class Scene:
    """An endpoint, and the requests that it was sent."""

    port: int = 0
    asked: list[bytes] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[Scene]:
    """Answer every request so; what does not say how long it is ends with the connection."""
    scene = Scene()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await _request(reader):
                scene.asked.append(asked)
                told = answer if isinstance(answer, bytes) else await answer()
                writer.write(told)
                if b"content-length: " not in told or b"99999" in told:
                    break
        finally:
            writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        scene.port = server.sockets[0].getsockname()[1]
        yield scene


async def _request(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
    return head + await reader.readexactly(int(lengths[0].split(b": ")[1]) if lengths else 0)


@attrs.frozen
class Vendor:
    """One vendor's client."""

    name: str

    def client(self, url: str) -> Client:
        client: Client = getattr(keval_clients, f"{self.name}_client")(url, Endpoint("the-model", {}, "s3cret"))
        return client

    async def ask(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send one request over a client of its own."""
        client = self.client(url)
        try:
            async with asyncio.timeout(30):
                return await client.post("/ask", {"question": "Why?"}, headers or {})
        finally:
            await client.aclose()

    def answered(self, answer: Answer) -> dict[str, Any]:
        """Send one request to an endpoint that answers so."""

        async def scenario() -> dict[str, Any]:
            async with serve(answer) as scene:
                return await self.ask(scene.url)

        return asyncio.run(scenario())


@pytest.fixture(params=["openai", "anthropic"])
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return Vendor(request.param)
