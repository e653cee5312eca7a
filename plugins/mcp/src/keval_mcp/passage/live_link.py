"""The link to a server that keval is connected to, and the attempts that use the server at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs

from keval.errors import ServerLostError
from keval.records.cassettes import ReplayMissError, TrafficError
from keval_mcp.passage.link import AgentRequest, Heard, marked
from keval_mcp.passage.replayed_link import ReplayedLink
from keval_mcp.server.audience import Audience, Member
from keval_mcp.server.connection import ServerConnection
from keval_mcp.server.upstream import CallLostError, CallTimeoutError, Upstream


@attrs.define(eq=False)
class LiveLink:
    """Sends the requests of one attempt by `connection`, marked with `meta`.

    `place` says whether a loss of the server may be due to another attempt's call. A server of the attempt's `own` has
    no other one. What `replayed` has is answered from there, if the run replays a recording as far as it goes.
    """

    connection: ServerConnection
    meta: Mapping[str, Any]
    place: ServerUser
    own: bool
    replayed: ReplayedLink | None = None
    _member: Member | None = attrs.field(default=None, init=False)
    _first: Upstream | None = attrs.field(default=None, init=False)

    @property
    def name(self) -> str:
        """The server's name."""
        return self.connection.server.name

    @property
    def audience(self) -> Audience:
        """Who answers what the server asks."""
        return self.connection.audience

    @property
    def bystander(self) -> bool:
        """Whether another attempt's call may be why this attempt has just lost the server."""
        return self.place.bystander

    def join(self, member: Member) -> None:
        """Let an attempt hear what the server says, until the link is closed."""
        self._member = member
        self.audience.members.append(member)

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        """Tell the server what the agent can do of what a server may ask."""
        if await self.connection.declare(capabilities):
            self._first = None

    async def ask(self, agent_request: AgentRequest, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        """Send a request once with these parameters and return its result; `heard` gets its progress.

        If a call changed the server's tools, and the server said so, they are read again by then.

        Raises:
            ValueError: the answer is not the result of a tool call.
            MCPError: the server refuses it.
            CallTimeoutError: it does not answer in time, and lives.
            ServerLostError: it does not come up, or is lost.
        """
        if self.replayed is not None:
            try:
                return await self.replayed.ask(agent_request, params, heard)
            except ReplayMissError:
                agent_request.sent = False
        before = time.perf_counter()
        upstream = await self._reach()
        agent_request.sent = True
        agent_request.aside += time.perf_counter() - before
        request = upstream.call if agent_request.kind == "call" else partial(upstream.request, agent_request.method)
        with marked(params, self.meta, self.audience, heard) as sent, self.place.calling():
            result = await request(sent, progress_timeout=agent_request.progress_timeout)
        before = time.perf_counter()
        await self.connection.relisted()
        agent_request.aside += time.perf_counter() - before
        return result

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification. Raises ServerLostError."""
        await (await self._reach()).notify(method, params)

    async def close(self, *, well: bool) -> None:
        """Note that the attempt ends; `well` says that no request is under way and the server was not lost.

        Then its tools are read once more, as not every server says that they have changed.
        """
        if well and self._first is not None:
            await self.connection.relist()
        if self._member in self.audience.members:
            self.audience.members.remove(self._member)

    async def _reach(self) -> Upstream:
        """Return a live session with the server. Raises ServerLostError."""
        upstream = await self.connection.upstream()
        if self._first not in (None, upstream) and self._member is not None:
            reason = f"server '{self.name}' was lost between two calls of this trial"
            details = {"bystander": self.bystander}
            lost = TrafficError("lost", reason, failure=ServerLostError.kind, details=details)
            self._member.relisted(upstream.listing, lost)
        self._first = upstream
        return upstream


@attrs.define(eq=False)
class ServerUsers:
    """The attempts that use one server at the same time.

    Nobody can tell which of several calls made a server fail. So an attempt has lost its server to its own call only if
    no other attempt's call was unanswered then, and no other attempt had lost the server since this one came.
    """

    _losses: int = attrs.field(default=0, init=False)
    _under_way: set[_Call] = attrs.field(factory=set, init=False)

    def join(self) -> ServerUser:
        """Return the place of an attempt that begins to use the server."""
        return ServerUser(self, self._losses)


@attrs.define(eq=False)
class ServerUser:
    """One attempt's place among those that use a server."""

    _users: ServerUsers
    _losses: int
    """How many losses of the server are no news to this attempt."""
    _bystander: bool = attrs.field(default=False, init=False)

    @property
    def bystander(self) -> bool:
        """Whether another attempt's call may be why this attempt has just lost the server."""
        return self._bystander or self._users._losses > self._losses or bool(self._others())

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Count a call of this attempt as under way until it is answered, or for good if it loses the server."""
        call = _Call(self, self._others())
        for other in call.beside:
            other.beside.add(call)
        self._users._under_way.add(call)
        answered = True
        try:
            yield
        except (CallLostError, CallTimeoutError):
            answered = False
            raise
        except ServerLostError:
            answered = False
            self._bystander = bool(call.beside) or self.bystander
            self._users._losses += 1
            self._losses += 1
            raise
        except BaseException as error:
            answered = isinstance(error, Exception)  # an attempt that ended left its call with the server
            raise
        finally:
            self._users._under_way.discard(call)
            if answered:
                for other in call.beside:
                    other.beside.discard(call)

    def _others(self) -> set[_Call]:
        return {call for call in self._users._under_way if call.of is not self}


@attrs.define(eq=False)
class _Call:
    of: ServerUser
    beside: set[_Call]
    """The calls of others that were under way at the same time and have not been answered."""
