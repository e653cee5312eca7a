"""The server proxy: connects to MCP servers, and offers each to agents through the tap, or as it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs

from keval.plugin import (
    ConnectedServer,
    McpServer,
    PreflightError,
    ServerLostError,
    ServerSpec,
    ServerTape,
    ToolOffer,
)
from keval_mcp.facts import tell
from keval_mcp.passage.backed import BackedLink
from keval_mcp.passage.company import Company
from keval_mcp.passage.link import Link
from keval_mcp.passage.live import LiveLink
from keval_mcp.passage.outcomes import kept_error
from keval_mcp.passage.played import PlayedLink
from keval_mcp.server.connection import ServerConnection
from keval_mcp.server.folder import in_folder
from keval_mcp.server.listing import Listing
from keval_mcp.server.pool import Pool
from keval_mcp.server.starter import Starter, connection_to
from keval_mcp.tapped import Offering, PlayedServer, Tapped, tapped

__all__ = ["McpProxy"]

# Python prints the warnings of libraries that nobody configured logging for; what the SDK has to say of a server
# reaches the user in keval's own errors.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_log = logging.getLogger("keval_mcp")


@attrs.frozen
class McpProxy:
    """Connects to servers over stdio, streamable HTTP and SSE; see `keval.plugin.ServerProxy`."""

    _starter: Starter = attrs.field(factory=Starter, init=False)

    @asynccontextmanager
    async def connect(self, server: ServerSpec) -> AsyncIterator[ConnectedServer]:
        """Bring a server up, list its tools, and hold it as long as its trials share it.

        Raises:
            PreflightError: the server does not come up, or has no tools.
            InterventionError: an intervention on it cannot be made.
        """
        async with AsyncExitStack() as stack:
            if server.played is not None and not server.asks_live:
                offering = Offering.of(server, Listing.told(server.played.listed()))
                yield PlayedServer(server.played, await tapped(server, offering, stack))
                return
            if server.bring_up is not None:
                server = await stack.enter_async_context(server.bring_up(server))
            async with AsyncExitStack() as first:
                connection, listing = await _first_connected(server, first)
                if server.played is not None:
                    listing = _as_recorded(server.name, server.played, listing)
                if server.keep is not None:
                    server.keep.end(server.keep.begin("listed"), listing.as_kept())
                offering = Offering.of(server, listing)
                if not server.tap:
                    await first.aclose()
                    yield _Direct(server, offering.offer)
                    return
                pool: Pool[ServerConnection] | None = None
                shared = offering.sharing.shared
                if not shared and server.start_ahead and not _is_told(server):
                    pool = Pool(partial(self._starter.started, server, connection.digest), server.start_ahead)
                    stack.push_async_callback(pool.close)
                    pool.add(connection, first.pop_all())
                elif not shared:
                    await first.aclose()
                yield _Live(server, connection, await tapped(server, offering, stack), self._starter, pool)


def _as_recorded(name: str, tape: ServerTape, listing: Listing) -> Listing:
    """Return what a server listed when it was recorded. Raises PreflightError: it has other tools now."""
    recorded = Listing.told(tape.listed())
    if recorded.digest != listing.digest:
        raise PreflightError(
            f"server '{name}' lists other tools than when it was recorded, so it cannot be asked what the recording"
            " does not have; leave out `misses: live`, or record again"
        )
    return recorded


async def _first_connected(server: ServerSpec, stack: AsyncExitStack) -> tuple[ServerConnection, Listing]:
    """Connect to a server for the first time, and return what it lists. Raises PreflightError."""
    try:
        connection = await stack.enter_async_context(connection_to(server))
        listing = (await connection.upstream()).listing
    except ServerLostError as error:
        raise PreflightError(str(error)) from error
    if not listing.tools:
        raise PreflightError(
            f"server '{server.name}' lists no tools, so it changes nothing for an agent; check its configuration"
        )
    connection.digest = listing.digest
    return connection, listing


@attrs.frozen(eq=False)
class _Direct:
    """A server that agents connect to themselves; nobody watches."""

    server: ServerSpec
    offer: ToolOffer

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[McpServer]:
        async with in_folder(tell(_brought_up(server, self.server))) as placed:
            yield McpServer(
                name=placed.name,
                transport=placed.transport,
                url=placed.url,
                headers=placed.headers,
                command=placed.command,
                args=placed.args,
                env=placed.env,
                cwd=placed.cwd,
                tools=self.offer.tools,
                timeout=placed.timeout,
                instructions=self.offer.instructions,
            )


@attrs.define(eq=False)
class _Live:
    """A server that keval is connected to. If trials share it, they do so by `connection`."""

    server: ServerSpec
    connection: ServerConnection
    tapped: Tapped
    starter: Starter
    pool: Pool[ServerConnection] | None
    _company: Company = attrs.field(factory=Company, init=False)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @property
    def offer(self) -> ToolOffer:
        return self.tapped.offering.offer

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[McpServer]:
        server = _brought_up(server, self.server)
        async with AsyncExitStack() as stack:
            if server.in_turn:
                await stack.enter_async_context(self._turn)
            number = server.keep.begin("opened") if server.keep is not None else 0
            try:
                live, listing = await self._link(server, stack)
            except ServerLostError as lost:
                if server.keep is not None:
                    server.keep.end(number, error=kept_error(lost, sent=False))
                raise
            link: Link = live
            if server.played is not None:
                link = BackedLink(PlayedLink(server.played, live.audience, live.own), live)
            if server.keep is not None:
                other = listing.tools != self.tapped.changes.original.tools
                server.keep.end(number, {"own": link.own, **({"listing": listing.as_kept()} if other else {})})
            yield await self.tapped.reached(server, link, listing, stack)

    async def _link(self, server: ServerSpec, stack: AsyncExitStack) -> tuple[LiveLink, Listing]:
        """Return one attempt's link, and what the server lists by now. Raises ServerLostError."""
        own = await self._own(server, stack)
        if own is None:
            await self.starter.reach(self.connection)
        # A session of one's own with a server that others use, too, is no server of one's own.
        alone = own is not None and server.transport == "stdio"
        company = Company() if alone else self._company
        connection = own or self.connection
        listing = (await connection.upstream()).listing
        return LiveLink(connection, server.meta, company.join(), own=own is not None), listing

    async def _own(self, server: ServerSpec, stack: AsyncExitStack) -> ServerConnection | None:
        """Connect to a server that no other trial uses, or to one that others use by a session of its own.

        Returns `None` if the trial shares the server: as all do, or as none comes up beside the one that they share;
        it may lock a file.
        """
        if self.tapped.offering.sharing.shared and server.isolation != "trial":
            return None
        if not self.tapped.offering.sharing.shared and _is_told(self.server):
            server = tell(server)
        started = self.starter.started(server, self.connection.digest)
        if self.pool is not None and _is_same_process(server, self.server):
            started = self.pool.take()
        try:
            own = await stack.enter_async_context(started)
            await self.starter.reach(own)  # what was started ahead may have ended since
        except ServerLostError as error:
            if not self.tapped.offering.sharing.shared:
                raise
            _log.warning("a trial shares the server again that it lost, as it gets none of its own: %s", error)
            return None
        return own


def _brought_up(server: ServerSpec, connected: ServerSpec) -> ServerSpec:
    """Return a trial's server as it is connected to: by what was brought up for the first connection."""
    return attrs.evolve(server, command=connected.command, url=connected.url, login=connected.login)


def _is_told(server: ServerSpec) -> bool:
    """Return whether a server that serves one trial is told of it when it is connected to, beside each call."""
    return server.transport != "stdio" or server.isolation == "trial"


def _is_same_process(server: ServerSpec, other: ServerSpec) -> bool:
    """Return whether a process that was started for the one serves the other as well."""
    names = ("command", "args", "env", "cwd", "folder")
    return all(getattr(server, name) == getattr(other, name) for name in names)
