"""An upstream: one session with an MCP server, held open by a task of its own.

A session must be opened and closed in one task, and a transport that breaks cancels the task that hosts it. So every
session has an owner task that does nothing else, and callers race their request against it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import attrs
from mcp import MCPError
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR

from keval.errors import ServerLostError
from keval.execute.shielding import settle
from keval.processes import supervised
from keval.records.servers import McpServer
from keval.seams.contexts import ServerSpec
from keval_mcp.server.audience import Audience
from keval_mcp.server.bodies import TOO_LARGE, StreamBrokenError, TooLargeError
from keval_mcp.server.client import Client
from keval_mcp.server.options import shown_url
from keval_mcp.server.process import ProcessLog
from keval_mcp.server.session import (
    NO_JSON,
    Listing,
    Session,
    begin,
    check_result,
    is_finite,
    told_changes,
    tool_error,
)
from keval_mcp.server.start_remedies import start_remedy
from keval_mcp.server.streams import LISTEN, TOO_DEEP, UNREADABLE, Junk
from keval_mcp.server.transports import connect, refusals
from keval_mcp.server.waiting import ProgressTimeout

T = TypeVar("T")

_log = logging.getLogger("keval_mcp")

CHECK_SECONDS = 5.0
"""How long a server that failed a call may take to list its tools before its session is given up."""

_IN_PLACE = {
    CONNECTION_CLOSED: ("Connection closed", "SSE stream ended", "SSE stream failed"),
    PARSE_ERROR: ("Failed to parse SSE message", "Failed to parse JSON response"),
}
"""How the SDK's client begins what it says in place of an answer, by code."""

_LISTENS = 20
"""How often a server that drops who listens for its changes is listened to anew."""
_LISTEN_PAUSE = 1.0
_CLOSE_SECONDS = 3.0
_CANCEL_SECONDS = 0.5
"""How long a request that is given up is waited for: the SDK tells the server, which may take nothing any more."""


class CallLostError(ServerLostError):
    """A call got no answer that can be used, by itself: the server still lists its tools."""


class CallTimeoutError(Exception):
    """A request took longer than it may, and the server lives: it still lists its tools."""


@attrs.define(eq=False)
class Upstream:
    """A session with `server`, made by `Upstream.connect` and ended by `close`; `reason` says why it has ended.

    What the server asks and says is for its `audience` to answer and hear.
    """

    server: McpServer | ServerSpec
    audience: Audience | None = None
    listing: Listing = attrs.field(init=False)
    reason: str = attrs.field(default="it closed the connection", init=False)
    _session: Session = attrs.field(init=False)
    _owner: asyncio.Task[None] = attrs.field(init=False)
    _ready: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _ended: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _answered: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _checking: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)
    _log: ProcessLog = attrs.field(factory=ProcessLog, init=False)
    _junk: Junk = attrs.field(factory=Junk, init=False)
    _kind: str | None = attrs.field(default=None, init=False)
    _given_up: set[asyncio.Task[Any]] = attrs.field(factory=set, init=False)

    @classmethod
    async def connect(cls, server: McpServer | ServerSpec, within: float, audience: Audience | None = None) -> Upstream:
        """Open a session and list the tools. Raises ServerLostError when that fails or takes longer than `within`."""
        upstream = cls(server, audience)
        upstream._owner = asyncio.create_task(upstream._own(within), name=f"mcp server {server.name}")
        try:
            async with asyncio.timeout(within):
                await upstream._ready.wait()
        except TimeoutError:
            await upstream.close()
            slow = "" if upstream._junk.count else "; raise its startup_timeout if it is only slow to start"
            raise upstream._lost(f"{place_of(server)}did not answer within {within:g} s{slow}") from None
        except asyncio.CancelledError:
            await upstream.close()
            raise
        if not upstream.alive:
            told = start_remedy(server, upstream.reason, upstream._log.tail())
            raise upstream._lost(f"{place_of(server)}did not come up: {upstream.reason}{told}")
        return upstream

    @property
    def alive(self) -> bool:
        """Whether calls can be sent; the server's end is noticed at once, also while nobody calls."""
        return not self._ended.is_set()

    async def call(self, params: Mapping[str, Any], progress_timeout: ProgressTimeout | None = None) -> dict[str, Any]:
        """Call a tool once, with the parameters of `tools/call`, and return what the server answers, as it wrote it.

        Raises:
            ValueError: the answer is not the result of a tool call.
            MCPError, CallTimeoutError, ServerLostError: as `request` does.
        """
        result = await self.request("tools/call", params, repr(params["name"]), progress_timeout)
        check_result(result)
        return result

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        what: str | None = None,
        progress_timeout: ProgressTimeout | None = None,
    ) -> dict[str, Any]:
        """Send a request once and return its result, unchecked and unchanged; errors name it as `what`.

        Raises:
            MCPError: the server refuses it.
            CallTimeoutError: it does not answer in time, and lives.
            ServerLostError: it ended, or what came in place of its answer is an HTTP error or no message.
        """
        what, junk = what or method, self._junk.count
        progress_timeout = progress_timeout or ProgressTimeout(self.server.timeout)
        schema = self.listing.schemas.get(params["name"]) if method == "tools/call" else None
        with refusals() as refused:  # the task below inherits it
            request = asyncio.create_task(self._session.request(method, params, schema=schema))
        kind: str | None = None
        alone = False
        try:
            await progress_timeout.wait({request, self._owner})
            timed_out = not (request.done() or self._owner.done())
        finally:
            await self._give_up(request)
        broken = bool(refused) and isinstance(refused[-1], StreamBrokenError)
        if timed_out and refused:  # over SSE, what refuses a message answers nobody
            problem = f"was lost during {what}: {refused[-1]}" if broken else f"answered {what} with {refused[-1]}"
        elif timed_out:
            problem = f"did not answer {what} within {progress_timeout.seconds:g} s"
        elif not request.done() or request.cancelled():
            problem = f"answered {what} with {refused[-1]}" if refused and not broken else f"was lost during {what}"
        else:
            try:
                result = request.result()
                self._answered.set()
                return result
            except MCPError as error:
                # A server may use the same codes for its own errors.
                alone = error.data == UNREADABLE or error.message.startswith(_IN_PLACE.get(error.code, ()))
                if refused and not broken:
                    problem = f"answered {what} with {refused[-1]}"
                    kind = TOO_LARGE if isinstance(refused[-1], TooLargeError) else None
                elif error.data in (TOO_LARGE, TOO_DEEP):
                    problem, kind = f"answered {what} with {error.message}", str(error.data)
                elif alone and error.code == CONNECTION_CLOSED:
                    problem = f"was lost during {what}" + (f": {refused[-1]}" if broken else "")
                elif alone:
                    came = error.message if error.data == UNREADABLE else "something that is no MCP message"
                    problem = f"answered {what} with {came}"
                else:
                    raise
        await self._check()
        # What came and is no message may have been the answer; then the server is not only slow.
        if self.alive and timed_out and not refused and junk == self._junk.count:
            raise CallTimeoutError(f"server '{self.server.name}' {problem}")
        if self.alive:
            raise self._lost(problem, kind, CallLostError if timed_out or kind or alone else ServerLostError)
        raise self._lost(f"{problem}: {self.reason}", kind or self._kind)

    async def close(self) -> None:
        """End the session, and with it the process of a stdio server; safe to call again."""
        # A session that still begins does not wait for `_ended`.
        if not self._ready.is_set():
            self._scope.cancel()
        self._ended.set()
        try:
            await settle(self._owner, within=_CLOSE_SECONDS)
        finally:
            self._scope.cancel()
            await settle(self._owner)
            await asyncio.gather(*self._given_up, return_exceptions=True)  # the session has ended, and so do they

    async def _own(self, within: float) -> None:
        with self._scope, refusals() as refused:
            try:
                async with (
                    connect(self.server, self._log, self._ended, self._junk) as (incoming, outgoing),
                    anyio.create_task_group() as group,
                ):
                    dispatcher = JSONRPCDispatcher(incoming, outgoing)
                    await group.start(dispatcher.run, self._asked, _nothing_left, self._heard)
                    if self.server.transport == "sse":
                        group.start_soon(self._watch)
                    about = (self.audience or Audience(self.server.name, Client(), lambda: None)).about
                    asked = self.server.protocol if isinstance(self.server, ServerSpec) else None
                    # That leaves as long for the handshake.
                    self._session = await begin(dispatcher, about, asked, patience=within / 2)
                    self.listing = await Listing.read(self._session)
                    self._ready.set()
                    wanted = dict.fromkeys(told_changes(self.listing.capabilities), True)
                    if wanted and self.audience is not None and not self.listing.begins_sessions:
                        group.start_soon(self.listen_to, wanted, self.audience.relist)
                    await self._ended.wait()
                    group.cancel_scope.cancel()
            except Exception as error:  # noqa: BLE001 - a seam: whatever ends a session is the reason callers are given
                self.reason = "; ".join(dict.fromkeys([explain(error), *map(str, refused)]))
                self._kind = TOO_LARGE if any(isinstance(each, TooLargeError) for each in refused) else None
            finally:
                self._ended.set()
                # Wakes whoever waits in `connect`, also where the session never began.
                self._ready.set()

    async def _watch(self) -> None:
        """Over SSE, what refuses the beginning answers nobody. Raises ConnectionError."""
        await self._ended.wait()
        if not self._ready.is_set():
            raise ConnectionError(self.reason)

    async def listen_to(self, wanted: Mapping[str, Any], missed: Callable[[], object] | None = None) -> None:
        """Listen for changes that a server without sessions tells; one that does not is read after trials.

        `missed` is called when something may have been missed.
        """
        for again in range(_LISTENS):
            if again:
                await asyncio.sleep(_LISTEN_PAUSE)
                # A request to a server that is away would end the session, so another's answer is waited for.
                self._answered.clear()
                await self._answered.wait()
                if missed is not None:
                    missed()
            with refusals():  # the session does not end by them
                try:
                    await self._session.request(LISTEN, {"notifications": wanted})
                except MCPError as error:
                    if error.code == METHOD_NOT_FOUND:
                        return

    async def relist(self, capabilities: Mapping[str, Any]) -> Listing | None:
        """Read the tools again; `None` if the server does not list them in time, or not any more.

        Without sessions, they are listed to a client with these capabilities beside those of the client.
        """
        try:
            listing = await self._within_check(Listing.read(self._session, capabilities))
        except (MCPError, ValueError):
            return None
        if listing is not None:
            self.listing = listing
        return listing

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification; one that cannot be sent any more is dropped."""
        await self._session.notify(method, params)

    async def _asked(
        self, context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if method == "ping":
            return {}
        if self.audience is None:
            raise MCPError(METHOD_NOT_FOUND, f"no client here answers {method}")
        if not is_finite(params):
            raise MCPError(INVALID_PARAMS, f"{method} holds {NO_JSON}")
        return await self.audience.answer(method, params or {})

    def _heard(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Take a notification of the server, in the order in which they come."""
        if not is_finite(params):
            _log.warning("server '%s' sent %s with %s: it is left out", self.server.name, method, NO_JSON)
        elif self.audience is not None:
            self.audience.hear(method, params or {})
        # Otherwise the SDK would hand it on in a task of its own, and two could change places.
        return True

    async def _check(self) -> None:
        """Give the session up unless the server still lists its tools: one slow tool is not a hung server."""
        # Calls that fail together wait here: once one of them finds that the server is gone, the others need not ask
        # it.
        async with self._checking:
            if not self.alive:
                await settle(self._owner, within=_CLOSE_SECONDS)  # its standard error is complete then
                return
            try:
                if await self._within_check(self._session.request("tools/list")) is None:
                    self._end("it stopped answering")
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:  # a server without tools answers so, and lives
                    self._end(explain(error))

    async def _within_check(self, agent_request: Coroutine[Any, Any, T]) -> T | None:
        """Return what a server answers to `agent_request`; `None` if it takes too long."""
        asked = asyncio.create_task(agent_request)
        try:
            await asyncio.wait({asked}, timeout=CHECK_SECONDS)
            answered = asked.done()
        finally:
            await self._give_up(asked)
        return asked.result() if answered else None

    async def _give_up(self, request: asyncio.Task[Any]) -> None:
        """Cancel a request, and leave it alone if that takes longer; `close` waits for it."""
        request.cancel()
        self._given_up.add(request)
        request.add_done_callback(self._forget)
        await settle(request, within=_CANCEL_SECONDS)

    def _forget(self, request: asyncio.Task[Any]) -> None:
        self._given_up.discard(request)
        if not request.cancelled():
            request.exception()  # seen: it was given up

    def _end(self, reason: str) -> None:
        self.reason = reason
        self._ended.set()

    def _lost(
        self, problem: str, kind: str | None = None, error: type[ServerLostError] = ServerLostError
    ) -> ServerLostError:
        if self._junk.count:
            if self.server.transport == "stdio":
                problem += (
                    f"\nits standard output has what is no MCP message: {self._junk.first}; that is for MCP alone, in"
                    " UTF-8: write logs to standard error"
                )
            else:
                problem += f"\nit sent what is no MCP message: {self._junk.first}"
        said = self._log.tail()
        ending = f"\nits standard error ends:\n{said}" if said else ""
        ran = (self.server.command or "", *self.server.args) if isinstance(self.server, ServerSpec) else ()
        ran = ran[len(supervised(())) :]  # without keval's supervisor of the server
        # A bare `python` is keval's own where no environment is active, and has not the server's packages.
        if "ModuleNotFoundError" in said and ran and os.path.dirname(ran[0]) == os.path.dirname(sys.executable):
            ending += f"\n{ran[0]} is keval's own Python: activate the server's environment, or give its Python's path"
        return error(f"server '{self.server.name}' {problem}{ending}", kind=kind)


async def _nothing_left(context: object, method: str, params: object) -> None:
    """Take what `_heard` leaves of a notification: nothing."""


def explain(error: BaseException) -> str:
    """Return the messages of an error and of all errors grouped in it, each once."""
    return "; ".join(dict.fromkeys(_messages(error)))


def place_of(server: McpServer | ServerSpec) -> str:
    """Return where a server is reached, without what may be secret in its URL."""
    return "" if server.url is None else f"at {shown_url(server.url)} "


def _messages(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _messages(inner)
    elif isinstance(error, MCPError) and error.data == UNREADABLE:
        yield f"it answered with {error.message}"
    else:
        yield str(error) or type(error).__name__


@asynccontextmanager
async def direct_channel(server: McpServer) -> AsyncIterator[DirectChannel]:
    """Open a session with a server, and close it at the end. Raises ServerLostError when it does not come up."""
    upstream = await Upstream.connect(server, server.timeout)
    try:
        yield DirectChannel(upstream)
    finally:
        await upstream.close()


@attrs.frozen(eq=False)
class DirectChannel:
    """Lists and calls as a `keval.plugin.ServerChannel` does."""

    _upstream: Upstream

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        return self._upstream.listing.tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await self._upstream.call({"name": name, "arguments": dict(arguments)})
        except MCPError as refused:
            return tool_error(refused.message)
        except CallTimeoutError as late:
            return tool_error(str(late))
        except ValueError as invalid:
            return tool_error(f"what came is not the result of a tool call: {invalid}")
