"""An agent's session with the tap, whatever carries it: what the tap answers, and messages in both directions.

In keval's own process that is memory: calls by a `Channel`, or the streams of the MCP SDK's client.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import attrs
from anyio.abc import ObjectSendStream
from mcp import MCPError, types
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Receive, Send

from keval.errors import ServerLostError
from keval.records.cassettes import ReplayMissError
from keval_mcp.passage.passage import Passage
from keval_mcp.server.audience import AgentSession, is_within
from keval_mcp.server.session import CHANGES, NO_JSON, Listing, told_changes, tool_error
from keval_mcp.server.streams import LISTEN
from keval_mcp.tap.translation import Translation, older

if TYPE_CHECKING:  # the SDK exports no name for its stream types
    from mcp.client._transport import TransportStreams


# MCP has no code for this; it is that of the Language Server Protocol (RequestCancelled).
_CANCELLED = MCPError(-32800, "Request cancelled")

Deliver: TypeAlias = Callable[[Mapping[str, Any], int | str | None], object]
"""Takes a message to the agent, and the id of the agent's request that it concerns; `None` if it concerns none."""


def _ended() -> MCPError:
    # Anew for each: one that is raised keeps the frames that it went through.
    return MCPError(types.CONNECTION_CLOSED, "the agent has ended its session")


@attrs.define(eq=False)
class Talk:
    """Takes messages of the agent and delivers those to it, such as what the server asks and says."""

    passage: Passage
    deliver: Deliver
    capabilities: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    _translation: Translation | None = attrs.field(default=None, init=False)
    _requests: dict[int | str, asyncio.Task[None]] = attrs.field(factory=dict, init=False)
    _asked: dict[int, asyncio.Future[dict[str, Any]]] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    _closed: bool = attrs.field(default=False, init=False)

    async def take(self, message: Mapping[str, Any]) -> None:
        """Take a message: a request, whose answer is delivered later, a notification, or the answer to a question."""
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if not isinstance(method, str):
            self._resolve(message)
        elif number is not None:
            self._requests[number] = asyncio.create_task(self._answer(number, method, params))
        elif method == "notifications/cancelled":
            request = self._requests.get(params.get("requestId", ""))
            if request is not None:
                request.cancel()
        elif method != "notifications/initialized" and not (self._translation and method == _ROOTS_CHANGED):
            await self.passage.notify(method, params)

    async def close(self) -> None:
        """End the session: requests under way are given up."""
        self._closed = True
        if self in self.passage.agents:
            self.passage.agents.remove(self)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(_ended())
        requests = [*self._requests.values()]
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        if self._translation is not None:
            await self._translation.close()

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the agent. What asks is taken to be its latest request. Raises MCPError when the agent refuses."""
        if self._closed:
            raise _ended()
        number, about = next(self._numbers), self._latest()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.deliver({**notification(method, params), "id": number}, about)
        try:
            return await answer
        except asyncio.CancelledError:
            self.deliver(notification("notifications/cancelled", {"requestId": number}), about)
            raise
        finally:
            del self._asked[number]

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on to the agent."""
        # No request of the agent is the reason for these.
        lasting = method == _UPDATED or method.endswith("/list_changed")
        self.deliver(notification(method, params), None if lasting else self._latest())

    async def begin(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of `initialize`; a server of the attempt's own is told what its agent can do.

        Raises:
            MCPError: the server does not come up for such an agent.
        """
        self.capabilities = declared_in({"params": params})
        if not self.passage.listing.begins_sessions:
            # Tasks of the handshake revisions are others than those of 2026-07-28.
            able = {name: value for name, value in self.capabilities.items() if name != "tasks"}
            self._translation = Translation(self.passage, able)
        elif self.passage.own:
            await self.passage.declare(self.capabilities)
        # An agent may send `initialize` again.
        if self not in self.passage.agents:
            self.passage.agents.append(self)
        return await result_of(self.passage, "initialize", params)

    def _latest(self) -> int | str | None:
        return next(reversed(self._requests), None)

    async def _answer(self, number: int | str, method: str, params: Mapping[str, Any]) -> None:
        try:
            if method == "initialize":
                result = await self.begin(params)
            elif method == LISTEN and self._translation is None and not self.passage.listing.begins_sessions:
                result = await _listened(self.passage, number, params, lambda told: self.deliver(told, number))
            else:
                result = await self._result_of(number, method, params)
            answer = answered(number, result)
        except MCPError as error:
            answer = refused(number, error)
        except asyncio.CancelledError:
            answer = refused(number, _CANCELLED)
        except Exception as error:  # noqa: BLE001 - a seam: the agent must not wait for ever
            answer = refused(number, MCPError(types.INTERNAL_ERROR, f"{type(error).__name__}: {error}"))
        self.deliver(answer, number)
        # An agent may have given the id to another request while this one was under way.
        if self._requests.get(number) is asyncio.current_task():
            del self._requests[number]

    async def _result_of(self, number: int | str, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        meta = params.get("_meta") or {}
        token = meta.get("progressToken")

        def progressed(progress: Mapping[str, Any]) -> None:
            self.deliver(notification("notifications/progress", {**progress, "progressToken": token}), number)

        heard = None if token is None else progressed
        if self._translation is not None:
            return await self._translation.result_of(
                method, params, lambda method, params: result_of(self.passage, method, params, heard)
            )
        if self.passage.listing.begins_sessions or types.LOG_LEVEL_META_KEY not in meta:
            return await result_of(self.passage, method, params, heard)
        # Without a session, a server logs about requests that ask for it.
        with _Listener(None, {}, lambda told: self.deliver(told, number)).among(self.passage.agents):
            return await result_of(self.passage, method, params, heard)

    def _resolve(self, message: Mapping[str, Any]) -> None:
        answer = self._asked.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        error, result = message.get("error"), message.get("result")
        if isinstance(error, Mapping):
            code = error.get("code")
            known = code if isinstance(code, int) else types.INTERNAL_ERROR
            answer.set_exception(MCPError(known, str(error.get("message", "")), error.get("data")))
        else:
            answer.set_result(dict(result) if isinstance(result, Mapping) else {})


_UPDATED = "notifications/resources/updated"
_ROOTS_CHANGED = "notifications/roots/list_changed"
"""Without sessions, a server learns of it by asking for the roots."""


async def _listened(
    passage: Passage, number: int | str, params: Mapping[str, Any], deliver: Callable[[Mapping[str, Any]], object]
) -> Mapping[str, Any]:
    """Deliver the changes that an agent listens for, and return the result with which that ends: at the trial's end.

    Raises:
        MCPError: the request does not say what for.
    """
    wanted = params.get("notifications")
    uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
    if not isinstance(wanted, dict) or not isinstance(uris, list | None):
        raise MCPError(types.INVALID_PARAMS, "notifications says by an object what to listen for")
    offered = passage.listing.capabilities
    honoured: dict[str, Any] = {name: True for name in told_changes(offered) if wanted.get(name) is True}
    if uris and (offered.get("resources") or {}).get("subscribe"):
        honoured["resourceSubscriptions"] = uris
    listener = _Listener(honoured, {SUBSCRIPTION_ID_META_KEY: number}, deliver)
    with ExitStack() as stack:

        def begin() -> None:
            listener.say("notifications/subscriptions/acknowledged", {"notifications": honoured})
            stack.enter_context(listener.among(passage.agents))

        await passage.listen_to(honoured.get("resourceSubscriptions", ()), begin)
    return {"resultType": "complete", "_meta": listener.meta}


@attrs.define(eq=False)
class _Listener:
    """What an agent hears without a session: the changes that `honoured` names, each marked by `meta`, or only logs."""

    honoured: Mapping[str, Any] | None
    meta: Mapping[str, Any]
    deliver: Callable[[Mapping[str, Any]], object]
    capabilities: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    _beside: list[AgentSession] = attrs.field(factory=list, init=False)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise MCPError(types.METHOD_NOT_FOUND, f"an agent without a session cannot be asked {method}")

    @contextmanager
    def among(self, agents: list[AgentSession]) -> Iterator[None]:
        self._beside = agents
        agents.append(self)
        try:
            yield
        finally:
            agents.remove(self)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        if self.honoured is None:
            # A server does not say which request a log is about: it is taken to be the latest, as in a session.
            asking = [each for each in self._beside if isinstance(each, _Listener) and each.honoured is None]
            if method == "notifications/message" and asking[-1] is self:
                self.deliver(notification(method, params))
            return
        changes = any(method == f"notifications/{CHANGES.get(name)}/list_changed" for name in self.honoured)
        if changes or (
            method == _UPDATED and is_within(params.get("uri"), self.honoured.get("resourceSubscriptions", ()))
        ):
            self.say(method, params)

    def say(self, method: str, params: Mapping[str, Any]) -> None:
        self.deliver(notification(method, {**params, "_meta": {**(params.get("_meta") or {}), **self.meta}}))


def needs_session(passage: Passage, capabilities: Mapping[str, Any]) -> bool:
    """Return whether an agent with these capabilities needs a session with the tap, in which the server can speak.

    Lists of tools, prompts and resources are answered without one, if the server is spoken to in sessions, too.
    """
    listed = ("tools", "prompts", "resources")
    offered = passage.listing.capabilities
    if not passage.listing.begins_sessions or any(name not in (*listed, "experimental") for name in offered):
        return True
    if any(offered.get(name, {}).get(aspect) for name in listed for aspect in ("listChanged", "subscribe")):
        return True
    return passage.own and (bool(capabilities) or passage.expects)


def declared_in(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that a client declares in `initialize`."""
    given = message.get("params", {}).get("capabilities")
    return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else {}


async def plain_answer(passage: Passage, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the message that answers a request without a session; `None` if there is nothing to answer."""
    number, method = message.get("id"), message.get("method")
    if not isinstance(method, str) or number is None:
        return None
    params = message.get("params", {})
    # Progress cannot be told without a session, but gives the request more time.
    progressed = None if (params.get("_meta") or {}).get("progressToken") is None else lambda progress: None
    try:
        return answered(number, await result_of(passage, method, params, progressed))
    except MCPError as error:
        return refused(number, error)


async def result_of(
    passage: Passage,
    method: str,
    params: Mapping[str, Any],
    progressed: Callable[[Mapping[str, Any]], object] | None = None,
) -> Mapping[str, Any]:
    """Return the result of an agent's request; `progressed` gets each notification of its progress.

    Raises:
        MCPError: the server refuses it, or the tap does.
    """
    if method != "initialize" and not passage.listing.begins_sessions:
        passage.spoken = passage.spoken or passage.listing.version
    match method:
        case "tools/call":
            if not isinstance(params.get("name"), str) or not isinstance(params.get("arguments"), dict | None):
                raise MCPError(types.INVALID_PARAMS, "a call has a name, and arguments that are an object")
            return await passage.forward(params, progressed)
        case "tools/list":
            tools = {"tools": await passage.list_tools(params)}
            made = {} if passage.listing.begins_sessions else {"resultType": "complete", **_UNCACHED}
            return {**made, **passage.listing.about, **tools}
        case "ping":
            return {}
        case "initialize":
            return _introduction(passage, params.get("protocolVersion"))
        case "server/discover":
            return _discovered(passage.listing)
    return await passage.request(method, params, progressed)


_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}
"""What a result has that may not be kept; a server that says nothing of that might mean it."""


def _introduction(passage: Passage, asked: object) -> dict[str, Any]:
    """Return the result of `initialize`, in the revision that client and server both speak.

    For a server that has no sessions, the tap speaks the newest one that has them.
    """
    listing, known = passage.listing, HANDSHAKE_PROTOCOL_VERSIONS
    version = listing.version if listing.begins_sessions else known[-1]
    if asked in known and known.index(str(asked)) < known.index(version):
        version = str(asked)
    info = listing.info or {"name": passage.name, "version": ""}
    passage.spoken = version
    introduction = {
        "protocolVersion": version,
        "capabilities": listing.capabilities,
        "serverInfo": info,
        **older(listing.more),
    }
    return introduction if listing.instructions is None else {**introduction, "instructions": listing.instructions}


def _discovered(listing: Listing) -> dict[str, Any]:
    """Return the result of `server/discover`; servers with a handshake are spoken to by that."""
    if listing.begins_sessions:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found: server/discover")
    # Recordings by earlier versions of keval have no `_meta`.
    info = {} if listing.info is None else {"_meta": {types.SERVER_INFO_META_KEY: listing.info}}
    found = {
        "resultType": "complete",
        "supportedVersions": [listing.version],
        "capabilities": listing.capabilities,
        **_UNCACHED,
        **info,
        **listing.more,
    }
    return found if listing.instructions is None else {**found, "instructions": listing.instructions}


async def received(receive: Receive, send: Send) -> dict[str, Any] | None:
    """Return the message that a request holds; one that holds none is refused, and `None` is returned."""
    try:
        return await _message(receive)
    except MCPError as error:
        await respond(send, 400, encoded(refused(None, error)))
        return None


async def respond(send: Send, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response: JSON if it has a body."""
    about = [(b"content-length", str(len(body)).encode()), *headers]
    if body:
        about.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})


def encoded(message: Mapping[str, Any]) -> bytes:
    """Return a message as JSON, in one line; an answer that holds what is no JSON is refused in its place."""
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        if "method" in message:
            raise
        error = message.get("error", {"code": types.INTERNAL_ERROR, "message": f"the answer holds {NO_JSON}"})
        return encoded(refused(message["id"], MCPError(error["code"], error["message"])))


def answered(number: object, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message that answers the request with this id."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that wants no answer; with an `id` it is a request."""
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def refused(number: object, error: MCPError) -> dict[str, Any]:
    """Return the message that refuses the request with this id."""
    about = {"code": error.code, "message": error.message}
    return {"jsonrpc": "2.0", "id": number, "error": about if error.data is None else {**about, "data": error.data}}


async def _message(receive: Receive) -> dict[str, Any]:
    """Return the message that the body of a request holds. Raises MCPError when it holds none."""
    pieces: list[bytes] = []
    while True:
        event = await receive()
        pieces.append(event.get("body", b""))
        if not event.get("more_body"):
            break
    try:
        message = json.loads(b"".join(pieces))
    except ValueError:
        raise MCPError(types.PARSE_ERROR, "the body is no JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise MCPError(types.INVALID_REQUEST, "the body is no JSON-RPC message")
    if not isinstance(message.get("params", {}), dict):
        raise MCPError(types.INVALID_REQUEST, "the parameters are no object")
    if not isinstance(message.get("id"), str | int | None):
        raise MCPError(types.INVALID_REQUEST, "the id is neither a text nor a number")
    return message


@attrs.frozen(eq=False)
class Channel:
    """Leads to `passage`; see `keval.plugin.ServerChannel`."""

    passage: Passage

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        return await self.passage.list_tools()

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            result = await self.passage.forward({"name": name, "arguments": dict(arguments)})
        except MCPError as refused:
            result = tool_error(refused.message)
        # `forward` tells a loss as an error of the tool, for agents that know nothing else. Here the trial can be
        # ended.
        log = self.passage.log
        if log.missed is not None:
            raise ReplayMissError(log.missed)
        if log.lost is not None:
            raise ServerLostError(log.lost, kind=log.kind)
        return result

    def streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        return pipe(self.passage)


@asynccontextmanager
async def pipe(passage: Passage) -> AsyncIterator[TransportStreams]:
    """Open a session with the tap, and yield the streams that a transport of the SDK yields."""
    # `deliver` cannot wait, so the stream must never be full.
    arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

    def deliver(message: Mapping[str, Any], about: int | str | None) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # who has ended the session waits no more
            arriving.send_nowait(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

    talk = Talk(passage, deliver)
    try:
        yield incoming, _Outgoing(talk)
    finally:
        await talk.close()
        arriving.close()
        incoming.close()


@attrs.frozen(eq=False)
class _Outgoing(ObjectSendStream[SessionMessage]):
    """A stream of what the SDK's client sends; it is taken at once."""

    _talk: Talk

    async def send(self, item: SessionMessage) -> None:
        await self._talk.take(item.message.model_dump(by_alias=True, exclude_unset=True))

    async def aclose(self) -> None:
        """Leave the session to the pipe, which ends it."""
