"""The tap over HTTP: an address for each attempt, and its requests by MCP's streamable HTTP transport (2025-11-25).

Without a session every request is answered by JSON, unless the server speaks of it before, in the revision 2026-07-28.
In a session every request is answered by a stream of server-sent events, which ends with its result, and what concerns
no request goes over the stream of a GET. `ClientSessions` serve any number of clients at one address, each as if it
were an attempt at a trial.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeAlias

import attrs
from mcp import MCPError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    validate_mcp_param_headers,
)
from mcp.types import METHOD_NOT_FOUND, PROTOCOL_VERSION_META_KEY
from starlette.types import Receive, Scope, Send

from keval.errors import ServerLostError
from keval.execute.shielding import settle
from keval.records.servers import McpServer
from keval_loopback.loopback import listen, refusal
from keval_loopback.serving import disconnected, serve
from keval_mcp.passage.passage import Passage
from keval_mcp.server.session import Listing
from keval_mcp.tap.agent_session import (
    Channel,
    Talk,
    answered,
    declared_in,
    encoded,
    needs_session,
    plain_answer,
    received,
    refused,
    respond,
)

KEEP_ALIVE = 24 * 60 * 60
"""Seconds for which an idle connection is kept."""


@attrs.define(eq=False)
class Tap:
    """An ASGI application that finds the passage that a URL stands for."""

    port: int
    _routes: dict[str, Route] = attrs.field(factory=dict, init=False)

    @asynccontextmanager
    async def open(self, passage: Passage) -> AsyncIterator[str]:
        """Yield the URL that leads to `passage`; afterwards the URL is unknown and no call is under way."""
        # Any program on this machine can reach the port, and nothing else admits it to an attempt.
        path = f"/{secrets.token_urlsafe(16)}/mcp"
        route = self._routes[path] = Route(passage)
        try:
            yield f"http://127.0.0.1:{self.port}{path}"
        finally:
            # First, so that no call begins while those under way are ended.
            del self._routes[path]
            await route.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get(scope["path"])
        if route is None:
            await respond(send, 404, b'"no attempt at a trial has this URL now"')
        elif status := refusal(scope, self.port):
            await respond(send, status)
        else:
            await route.serve(scope, receive, send)


@asynccontextmanager
async def tap(label: str) -> AsyncIterator[Tap]:
    """Serve attempts on loopback until the end of the context."""
    listener = listen()
    tapped = Tap(listener.getsockname()[1])
    # A connection closed here while idle could cost the agent that is just reusing it a call.
    async with serve(tapped, listener=listener, keep_alive=KEEP_ALIVE):
        yield tapped


_UNKNOWN = MCPError(-32600, "Session not found")


@attrs.define(eq=False)
class Route:
    """Leads to `passage`: plainly, a request at a time, unless the server or the agent needs a session.

    With `always_sessions` every client gets one, by which clients are told apart.
    """

    passage: Passage
    always_sessions: bool = False
    _relays: dict[str, Relay] = attrs.field(factory=dict, init=False)

    @property
    def sessions(self) -> tuple[str, ...]:
        """The ids of the sessions that are open."""
        return tuple(self._relays)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        session = session_of(scope)
        relay = None if session is None else self._relays.get(session)
        match scope["method"]:
            # By 404 a client of MCP learns that its session is gone, and begins another.
            case _ if session is not None and relay is None:
                await respond(send, 404, encoded(refused(None, _UNKNOWN)))
            case "POST":
                message = await received(receive, send)
                if message is not None:
                    await self.post(message, relay, scope, receive, send)
            case "GET" if relay is not None:
                await relay.get(receive, send)
            case "DELETE" if relay is not None:
                del self._relays[relay.id]
                await relay.close()
                await respond(send, 200)
            case _:  # without a session there is none to end, and nothing that the server would say unasked
                await respond(send, 405, b"", (b"allow", b"POST"))

    async def post(
        self, message: Mapping[str, Any], relay: Relay | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a message, of the session `relay` if there is one."""
        if relay is not None:
            await relay.post(message, send)
            return
        begins = message.get("method") == "initialize" and not speaks_without_sessions(message)
        if begins and (self.always_sessions or needs_session(self.passage, declared_in(message))):
            await self._begin(message, send)
            return
        is_request = isinstance(message.get("method"), str) and message.get("id") is not None
        if is_request and not begins and not self.passage.listing.begins_sessions:
            if (problem := _misstated(message, scope, self.passage.listing)) is not None:
                await respond(send, _status(problem.code), encoded(refused(message["id"], problem)))
            else:
                await self._answer(message, receive, send)
            return
        answer = await plain_answer(self.passage, message)
        await respond(send, 202 if answer is None else 200, b"" if answer is None else encoded(answer))

    async def _answer(self, message: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request of the revision that has no sessions; a client that hangs up has given it up."""
        stream = _Stream()
        talk = Talk(self.passage, stream.take)
        try:
            await talk.take(message)
            await _until_hung_up(stream.answer(send), receive)
        finally:
            await talk.close()

    async def _begin(self, message: Mapping[str, Any], send: Send) -> None:
        """Answer `initialize`; one that is refused begins no session."""
        relay = Relay(self.passage)
        try:
            answer = answered(message.get("id"), await relay.begin(message.get("params", {})))
        except MCPError as error:
            await relay.close()
            await respond(send, 200, encoded(refused(message.get("id"), error)))
            return
        self._relays[relay.id] = relay
        await respond(send, 200, encoded(answer), relay.header)

    async def close(self) -> None:
        """End all sessions, and the calls still under way."""
        relays, self._relays = [*self._relays.values()], {}
        for relay in relays:
            await relay.close()
        await self.passage.close()


def speaks_without_sessions(message: Mapping[str, Any]) -> bool:
    """Return whether a message says by itself in which revision it is, as those of 2026-07-28 do."""
    meta = message.get("params", {}).get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def _misstated(message: Mapping[str, Any], scope: Scope, listing: Listing) -> MCPError | None:
    """Return why the revision without sessions refuses a request: it lacks what each carries, or its headers differ."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    found: object = classify_inbound_request(message, headers=headers, supported_modern_versions=(listing.version,))
    params = message.get("params", {})
    if message["method"] == "tools/call" and not isinstance(found, InboundLadderRejection):
        schema = listing.schemas.get(str(params.get("name")))
        found = validate_mcp_param_headers(schema, params.get("arguments"), headers)
    if isinstance(found, InboundLadderRejection):
        return MCPError(found.code, found.message, found.data)
    # The server answers for itself what else is unknown to it.
    gone = message["method"] in ("initialize", "ping")
    return MCPError(METHOD_NOT_FOUND, "Method not found", message["method"]) if gone else None


def _status(code: object) -> int:
    return ERROR_CODE_HTTP_STATUS.get(code, 200) if isinstance(code, int) else 200


def session_of(scope: Scope) -> str | None:
    """Return the id of the session that a request is part of."""
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"mcp-session-id"), None)


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

    async def begin(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to `initialize`. Raises MCPError."""
        return await self._talk.begin(params)

    async def post(self, message: Mapping[str, Any], send: Send) -> None:
        """Take a message of the agent: a request, a notification, or the answer to a request of the server."""
        number = message.get("id")
        if isinstance(message.get("method"), str) and number is not None:
            stream = self._streams[number] = _Stream()
            await self._talk.take(message)
            await stream.serve(send, self.header)
        else:
            await self._talk.take(message)
            await respond(send, 202)

    async def get(self, receive: Receive, send: Send) -> None:
        """Serve what the server says that concerns no request, until the agent hangs up."""
        if self._heard:
            await respond(send, 409, b'"there is a stream for this session already"')
            return
        self._heard = True
        try:
            await _until_hung_up(self._unasked.serve(send, self.header), receive)
        finally:
            self._heard = False

    async def close(self) -> None:
        """End the session: its requests are given up, and all its streams end."""
        await self._talk.close()
        for stream in (*self._streams.values(), self._unasked):
            stream.end()

    @property
    def header(self) -> tuple[bytes, bytes]:
        return (b"mcp-session-id", self.id.encode())

    def _deliver(self, message: Mapping[str, Any], about: int | str | None) -> None:
        # A request that was answered has no stream any more; what comes late about it goes to the GET.
        stream = self._unasked if about is None else self._streams.get(about, self._unasked)
        stream.add(message)
        if "method" not in message and about is not None:  # the answer ends the stream
            stream.end()
            self._streams.pop(about, None)


async def _until_hung_up(serving: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Send a response until it ends, or the client hangs up."""
    tasks = (asyncio.create_task(serving), asyncio.create_task(disconnected(receive)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()  # raises what went wrong
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_SILENT = 15.0
"""Seconds of silence, after which a stream carries a comment, as the SDK's servers do: clients give a mute one up."""


@attrs.define(eq=False)
class _Stream:
    """Messages for an agent, as server-sent events, until it is ended; `most` bounds how many wait."""

    most: int | None = None
    _status: int = attrs.field(default=200, init=False)
    _waiting: list[bytes] = attrs.field(factory=list, init=False)
    _more: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _ended: bool = attrs.field(default=False, init=False)

    def add(self, message: Mapping[str, Any]) -> None:
        self._waiting.append(encoded(message))
        if self.most is not None:
            del self._waiting[: -self.most]
        self._more.set()

    def end(self) -> None:
        self._ended = True
        self._more.set()

    def take(self, message: Mapping[str, Any], about: object) -> None:
        """Add a message about the one request that the stream is for, which ends with its answer."""
        self.add(message)
        if "method" not in message:
            self._status = _status(message.get("error", {}).get("code"))
            self.end()

    async def answer(self, send: Send) -> None:
        """Send the answer as JSON, or as a stream if something is said before it, or it takes long."""
        await self._change()
        if self._ended and len(self._waiting) == 1:
            await respond(send, self._status, self._waiting[0])
        else:
            await self.serve(send)

    async def serve(self, send: Send, *headers: tuple[bytes, bytes]) -> None:
        about = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"), *headers]
        await send({"type": "http.response.start", "status": 200, "headers": about})
        while True:
            await self._change()
            self._more.clear()
            events = [b"event: message\r\ndata: " + each + b"\r\n\r\n" for each in self._waiting]
            body, self._waiting = b"".join(events) or b": silence\r\n\r\n", []
            await send({"type": "http.response.body", "body": body, "more_body": not self._ended})
            if self._ended:
                return

    async def _change(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENT):
                await self._more.wait()


PATH = "/mcp"


OpenServer: TypeAlias = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[McpServer]]


@attrs.define(eq=False)
class ClientSessions:
    """An ASGI application that opens a server for every `initialize`, and one for all requests without a session.

    `open_server` enters the context and gives the server, for a client with these capabilities.
    """

    port: int
    open_server: OpenServer
    _clients: dict[str, _Client] = attrs.field(factory=dict, init=False)
    _without_session: _Client | None = attrs.field(default=None, init=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            await respond(send, 404, b'"the server is at /mcp"')
            return
        if status := refusal(scope, self.port):
            await respond(send, status)
            return
        session = session_of(scope)
        if session is not None and session in self._clients:
            client = self._clients[session]
            await client.route.serve(scope, receive, send)
            # The stream of events and the request that ends the session return one after the other.
            if not client.route.sessions and self._clients.pop(session, None) is client:
                await client.end()
        elif session is None and scope["method"] == "POST":
            await self._welcome(scope, receive, send)
        elif session is None:
            await respond(send, 405, b"", (b"allow", b"POST"))
        else:
            await respond(send, 404, encoded(refused(None, _UNKNOWN)))

    async def close(self) -> None:
        """End all clients."""
        clients, self._clients = [*self._clients.values()], {}
        shared, self._without_session = self._without_session, None
        await asyncio.gather(*(client.end() for client in (*clients, shared) if client is not None))

    async def _welcome(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await received(receive, send)
        if message is None:
            return
        begins = message.get("method") == "initialize" and not speaks_without_sessions(message)
        try:
            client = await (_Client.begin(self.open_server, declared_in(message)) if begins else self._shared())
        except ServerLostError as lost:
            await respond(send, 502, str(lost).encode(), (b"content-type", b"text/plain"))
            return
        await client.route.post(message, None, scope, receive, send)
        self._clients.update(dict.fromkeys(client.route.sessions, client))
        if begins and not client.route.sessions:  # the server was not willing
            await client.end()

    async def _shared(self) -> _Client:
        """Return the client that stands for all that have no session. Raises ServerLostError."""
        async with self._opening:
            if self._without_session is None:
                self._without_session = await _Client.begin(self.open_server, {})
            return self._without_session


@attrs.define(eq=False)
class _Client:
    """One client of the server. A task of its own enters and leaves the context."""

    route: Route
    _left: asyncio.Event
    _owner: asyncio.Task[None]

    @classmethod
    async def begin(cls, open_server: OpenServer, capabilities: Mapping[str, Any]) -> _Client:
        left = asyncio.Event()
        entered: asyncio.Future[Passage] = asyncio.get_running_loop().create_future()

        async def own() -> None:
            try:
                async with open_server(capabilities) as server:
                    assert isinstance(server.channel, Channel)  # noqa: S101 - the server proxy of this package made it
                    entered.set_result(server.channel.passage)
                    await left.wait()
            except Exception as error:  # noqa: BLE001 - a seam: who waits to enter is told
                if not entered.done():
                    entered.set_exception(error)

        owner = asyncio.create_task(own(), name="a client of a server")
        return cls(Route(await entered, always_sessions=True), left, owner)

    async def end(self) -> None:
        await self.route.close()
        self._left.set()
        await settle(self._owner)
