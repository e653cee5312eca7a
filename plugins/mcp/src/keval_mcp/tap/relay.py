"""A relay: an agent's session with the tap over HTTP.

It is the streamable HTTP transport of MCP (2025-11-25, "Transports"): every request is answered by a stream of
server-sent events, which ends with its result, and what concerns no request goes over the stream of a GET.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from starlette.types import Receive, Send

from keval_mcp.passage.passage import Passage
from keval_mcp.tap.messages import answered, encoded, refused, respond
from keval_mcp.tap.talk import Talk

__all__ = ["Relay"]

_WAITING = 256
"""Messages that wait for an agent to open its GET stream; more push the oldest out."""


@attrs.define(eq=False)
class Relay:
    """The session `id` of an agent."""

    passage: Passage
    id: str = attrs.field(factory=secrets.token_urlsafe)
    _talk: Talk = attrs.field(init=False)
    _streams: dict[int | str, _Stream] = attrs.field(factory=dict, init=False)
    _unasked: _Stream = attrs.field(factory=lambda: _Stream(_WAITING), init=False)
    _heard: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._talk = Talk(self.passage, self._deliver)

    async def begin(self, message: Mapping[str, Any], send: Send) -> None:
        """Answer `initialize`."""
        try:
            answer = answered(message.get("id"), await self._talk.begin(message.get("params", {})))
        except MCPError as error:
            answer = refused(message.get("id"), error)
        await respond(send, 200, encoded(answer), self._header)

    async def post(self, message: Mapping[str, Any], send: Send) -> None:
        """Take a message of the agent: a request, a notification, or the answer to a request of the server."""
        number = message.get("id")
        if isinstance(message.get("method"), str) and number is not None:
            stream = self._streams[number] = _Stream()
            await self._talk.take(message)
            await stream.serve(send, self._header)
        else:
            await self._talk.take(message)
            await respond(send, 202)

    async def get(self, receive: Receive, send: Send) -> None:
        """Serve what the server says that concerns no request, until the agent hangs up."""
        if self._heard:
            await respond(send, 409, b'"there is a stream for this session already"')
            return
        self._heard = True
        serving = asyncio.create_task(self._unasked.serve(send, self._header))
        hanging_up = asyncio.create_task(_hung_up(receive))
        try:
            await asyncio.wait({serving, hanging_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._heard = False
            for task in (serving, hanging_up):
                task.cancel()
            await asyncio.gather(serving, hanging_up, return_exceptions=True)

    async def close(self) -> None:
        """End the session: its requests are given up, and all its streams end."""
        await self._talk.close()
        for stream in (*self._streams.values(), self._unasked):
            stream.end()

    @property
    def _header(self) -> tuple[bytes, bytes]:
        return (b"mcp-session-id", self.id.encode())

    def _deliver(self, message: Mapping[str, Any], about: int | str | None) -> None:
        stream = self._unasked if about is None else self._streams.get(about, self._unasked)
        stream.add(message)
        if "method" not in message and about is not None:  # the answer ends the stream
            stream.end()
            self._streams.pop(about, None)


@attrs.define(eq=False)
class _Stream:
    """Messages for an agent, as server-sent events, until it is ended; `most` bounds how many wait."""

    most: int | None = None
    _waiting: list[bytes] = attrs.field(factory=list, init=False)
    _more: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _ended: bool = attrs.field(default=False, init=False)

    def add(self, message: Mapping[str, Any]) -> None:
        self._waiting.append(b"event: message\r\ndata: " + encoded(message) + b"\r\n\r\n")
        if self.most is not None:
            del self._waiting[: -self.most]
        self._more.set()

    def end(self) -> None:
        self._ended = True
        self._more.set()

    async def serve(self, send: Send, *headers: tuple[bytes, bytes]) -> None:
        about = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"), *headers]
        await send({"type": "http.response.start", "status": 200, "headers": about})
        while True:
            await self._more.wait()
            self._more.clear()
            events, self._waiting = b"".join(self._waiting), []
            await send({"type": "http.response.body", "body": events, "more_body": not self._ended})
            if self._ended:
                return


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
