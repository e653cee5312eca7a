"""The server proxy: connects to MCP servers, and offers each to agents through the tap, or as it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs

from keval.plugin import (
    CallLog,
    ConnectedServer,
    McpServer,
    PreflightError,
    ServerLostError,
    ServerSpec,
    Sharing,
    ToolOffer,
)
from keval_mcp.changes import Changes
from keval_mcp.facts import tell
from keval_mcp.passage.company import Company
from keval_mcp.passage.offered import Offered
from keval_mcp.passage.passage import Passage
from keval_mcp.server.connection import ServerConnection
from keval_mcp.server.folder import in_folder
from keval_mcp.server.pool import Pool
from keval_mcp.server.starter import Starter, connection_to
from keval_mcp.server.upstream import CHECK_SECONDS
from keval_mcp.sharing import sharing_of
from keval_mcp.tap.channel import Channel
from keval_mcp.tap.tap import Tap, tap

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
        async with AsyncExitStack() as stack, AsyncExitStack() as first:
            try:
                connection = await first.enter_async_context(connection_to(server))
                listing = (await connection.upstream()).listing
            except ServerLostError as error:
                raise PreflightError(str(error)) from error
            if not listing.tools:
                raise PreflightError(
                    f"server '{server.name}' lists no tools, so it changes nothing for an agent;"
                    " check its configuration"
                )
            connection.digest = listing.digest
            if not server.server_instructions:
                listing = attrs.evolve(listing, instructions=None)
            changes = Changes.of(server.interventions, {}, listing)
            sharing = sharing_of(server, changes.listing.tools)
            offer = _offer(server, changes, sharing)
            if not server.tap:
                await first.aclose()
                yield _Direct(offer)
                return
            pool: Pool[ServerConnection] | None = None
            if not sharing.shared and server.start_ahead and not _is_told(server):
                pool = Pool(partial(self._starter.started, server, connection.digest), server.start_ahead)
                stack.push_async_callback(pool.close)
                pool.add(connection, first.pop_all())
            elif not sharing.shared:
                await first.aclose()
            tapped = await stack.enter_async_context(tap(server.name))
            yield _Tapped(server, connection, tapped, changes, offer, sharing, self._starter, pool)


@attrs.frozen(eq=False)
class _Direct:
    """A server that agents connect to themselves; nobody watches."""

    offer: ToolOffer

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[McpServer]:
        async with in_folder(tell(server)) as placed:
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
class _Tapped:
    """A server that agents reach through the tap. If trials share it, they do so by `connection`."""

    server: ServerSpec
    connection: ServerConnection
    tap: Tap
    changes: Changes
    offer: ToolOffer
    sharing: Sharing
    starter: Starter
    pool: Pool[ServerConnection] | None
    _company: Company = attrs.field(factory=Company, init=False)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[McpServer]:
        async with AsyncExitStack() as stack:
            if server.in_turn:
                await stack.enter_async_context(self._turn)
            own = await self._own(server, stack)
            if own is None:
                await self.starter.reach(self.connection)
            # A session of one's own with a server that others use, too, is no server of one's own.
            alone = own is not None and server.transport == "stdio"
            company = Company() if alone else self._company
            changes = self._named(server)
            trial = changes.trial(seed=server.seed, trial=server.trial, others=server.others)
            connection = own or self.connection
            offered = Offered(server.name, server.dynamic_tools, changes, trial, CallLog())
            offered.take((await connection.upstream()).listing)
            passage = Passage(connection, offered, server.meta, company.join(), own=own is not None)
            url = await stack.enter_async_context(self.tap.open(passage))
            yield McpServer(
                name=server.name,
                transport="http",
                url=url,
                tools=passage.listing.names,
                # The tap notices first that a server does not answer, and tells the agent why.
                timeout=max(server.timeout, server.max_timeout or 0.0) + 2 * CHECK_SECONDS,
                log=passage.log,
                instructions=self.offer.instructions,
                channel=Channel(passage),
            )

    def _named(self, server: ServerSpec) -> Changes:
        """Return the changes with the aliases of the condition, which are known when all its servers are."""
        if server.aliases != self.changes.aliases:
            self.changes = Changes.of(server.interventions, server.aliases, self.changes.original)
        return self.changes

    async def _own(self, server: ServerSpec, stack: AsyncExitStack) -> ServerConnection | None:
        """Connect to a server that no other trial uses, or to one that others use by a session of its own.

        Returns `None` if the trial shares the server: as all do, or as none comes up beside the one that they share;
        it may lock a file.
        """
        if self.sharing.shared and server.isolation != "trial":
            return None
        if not self.sharing.shared and _is_told(self.server):
            server = tell(server)
        started = self.starter.started(server, self.connection.digest)
        if self.pool is not None and _is_same_process(server, self.server):
            started = self.pool.take()
        try:
            own = await stack.enter_async_context(started)
            await self.starter.reach(own)  # what was started ahead may have ended since
        except ServerLostError as error:
            if not self.sharing.shared:
                raise
            _log.warning("a trial shares the server again that it lost, as it gets none of its own: %s", error)
            return None
        return own


def _is_told(server: ServerSpec) -> bool:
    """Return whether a server that serves one trial is told of it when it is connected to, beside each call."""
    return server.transport != "stdio" or server.isolation == "trial"


def _is_same_process(server: ServerSpec, other: ServerSpec) -> bool:
    """Return whether a process that was started for the one serves the other as well."""
    names = ("command", "args", "env", "cwd", "folder")
    return all(getattr(server, name) == getattr(other, name) for name in names)


def _offer(server: ServerSpec, changes: Changes, sharing: Sharing) -> ToolOffer:
    listing, original = changes.listing, changes.original if changes.interventions else None
    return ToolOffer(
        server=server.name,
        tools=listing.names,
        digest=listing.digest,
        definitions=listing.tools,
        instructions=listing.instructions,
        original=original.tools if original else None,
        original_digest=original.digest if original else None,
        original_instructions=original.instructions if original else None,
        unmatched=changes.unmatched,
        sharing=sharing,
    )
