"""A relay: one session of an agent with the tap, in which both sides may speak at any time.

It is the streamable HTTP transport of MCP (2025-11-25, "Transports"): every request is answered by a stream of
server-sent events, which ends with its result, and what concerns no request goes over the stream of a GET.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR
from starlette.types import Receive, Send

from keval_mcp.messages import answered, encoded, refused, respond
from keval_mcp.passage import Passage
from keval_mcp.plain import result_of

__all__ = ["Relay"]

_CANCELLED = MCPError(-32800, "Request cancelled")
_WAITING = 256
"""Messages that wait for an agent to open its GET stream; more push the oldest out."""


@attrs.define(eq=False)
class Relay:
    """The session `id` of an agent that declares `capabilities`; an `AgentSession` for the server's audience."""

    passage: Passage
    capabilities: Mapping[str, Any]
    id: str = attrs.field(factory=secrets.token_urlsafe)
    _streams: dict[Any, _Stream] = attrs.field(factory=dict, init=False)
    _unasked: _Stream = attrs.field(factory=lambda: _Stream(_WAITING), init=False)
    _heard: bool = attrs.field(default=False, init=False)
    _asked: dict[int, asyncio.Future[dict[str, Any]]] = attrs.field(factory=dict, init=False)
    _tasks: dict[Any, asyncio.Task[None]] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    _closed: bool = attrs.field(default=False, init=False)

    async def begin(self, message: Mapping[str, Any], send: Send) -> None:
        """Answer `initialize`; a server of the attempt's own is told what its agent can do."""
        if self.passage.own:
            await self.passage.declare(self.capabilities)
        self.passage.agents.append(self)
        try:
            answer = answered(message.get("id"), await result_of(self.passage, "initialize", message.get("params", {})))
        except MCPError as error:
            answer = refused(message.get("id"), error)
        await respond(send, 200, encoded(answer), self._header)

    async def post(self, message: Mapping[str, Any], send: Send) -> None:
        """Take a message of the agent: a request, a notification, or the answer to a request of the server."""
        number, method = message.get("id"), message.get("method")
        if isinstance(method, str) and number is not None:
            stream = self._streams[number] = _Stream()
            self._tasks[number] = asyncio.create_task(self._answer(number, method, message.get("params", {}), stream))
            await stream.serve(send, self._header)
            return
        if isinstance(method, str):
            await self._take(method, message.get("params", {}))
        else:
            self._resolve(message)
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
        self._closed = True
        if self in self.passage.agents:
            self.passage.agents.remove(self)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(MCPError(CONNECTION_CLOSED, "the agent has ended its session"))
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (*self._streams.values(), self._unasked):
            stream.end()

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the agent, over the stream of its latest request; see `AgentSession`."""
        if self._closed:
            raise MCPError(CONNECTION_CLOSED, "the agent has ended its session")
        number, stream = next(self._numbers), self._latest()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        stream.add({"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})})
        try:
            return await answer
        except asyncio.CancelledError:
            stream.add(_notification("notifications/cancelled", {"requestId": number}))
            raise
        finally:
            del self._asked[number]

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on; see `AgentSession`. One that may concern a request goes over the latest's stream."""
        lasting = method == "notifications/resources/updated" or method.endswith("/list_changed")
        stream = self._unasked if lasting else self._latest()
        stream.add(_notification(method, params))

    @property
    def _header(self) -> tuple[bytes, bytes]:
        return (b"mcp-session-id", self.id.encode())

    def _latest(self) -> _Stream:
        return next(reversed(self._streams.values()), self._unasked)

    async def _answer(self, number: Any, method: str, params: Mapping[str, Any], stream: _Stream) -> None:
        token = (params.get("_meta") or {}).get("progressToken")

        def progressed(progress: Mapping[str, Any]) -> None:
            stream.add(_notification("notifications/progress", {**progress, "progressToken": token}))

        try:
            answer = answered(
                number, await result_of(self.passage, method, params, None if token is None else progressed)
            )
        except MCPError as error:
            answer = refused(number, error)
        except asyncio.CancelledError:
            answer = refused(number, _CANCELLED)
        except Exception as error:  # noqa: BLE001 - a seam: the agent must not wait for ever
            answer = refused(number, MCPError(INTERNAL_ERROR, f"{type(error).__name__}: {error}"))
        stream.add(answer)
        stream.end()
        if self._streams.get(number) is stream:
            del self._streams[number], self._tasks[number]

    async def _take(self, method: str, params: Mapping[str, Any]) -> None:
        match method:
            case "notifications/initialized":
                pass
            case "notifications/cancelled":
                task = self._tasks.get(params.get("requestId"))
                if task is not None:
                    task.cancel()
            case _:
                await self.passage.notify(method, params)

    def _resolve(self, message: Mapping[str, Any]) -> None:
        answer = self._asked.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            known = code if isinstance(code, int) else INTERNAL_ERROR
            answer.set_exception(MCPError(known, str(error.get("message", "")), error.get("data")))
        else:
            result = message.get("result")
            answer.set_result(result if isinstance(result, dict) else {})


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


def _notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}
