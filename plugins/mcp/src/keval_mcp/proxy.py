"""The server proxy: connects to MCP servers, and offers each to agents through the tap, or as it is."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import attrs

from keval.plugin import (
    ConnectedServer,
    McpServer,
    PreflightError,
    ServerLostError,
    ServerSpec,
    ToolOffer,
    supervised,
)
from keval_mcp.company import Company
from keval_mcp.connection import ServerConnection
from keval_mcp.listing import Listing
from keval_mcp.passage import Passage
from keval_mcp.tap import Tap, tap
from keval_mcp.upstream import CHECK_SECONDS

__all__ = ["McpProxy"]

# Python prints the warnings of libraries that nobody configured logging for; what the SDK has to say of a server
# reaches the user in keval's own errors.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_log = logging.getLogger("keval_mcp")

_PAUSE = 0.25
"""Seconds until a server that is starting again is tried again."""


@attrs.frozen
class McpProxy:
    """Connects to servers over stdio, streamable HTTP and SSE; see `keval.plugin.ServerProxy`."""

    @asynccontextmanager
    async def connect(self, server: ServerSpec) -> AsyncIterator[ConnectedServer]:
        """Bring a server up, list its tools, and hold it as long as its trials share it.

        Raises:
            PreflightError: the server does not come up, or has no tools.
        """
        connection = ServerConnection(_supervised(server))
        try:
            try:
                listing = (await connection.upstream()).listing
            except ServerLostError as error:
                raise PreflightError(str(error)) from error
            if not listing.tools:
                raise PreflightError(
                    f"server '{server.name}' lists no tools, so it changes nothing for an agent;"
                    " check its configuration"
                )
            connection.digest = listing.digest
            offer = ToolOffer(server.name, listing.names, listing.digest)
            if not server.tap:
                await connection.close()
                yield _Direct(offer)
                return
            if server.isolation == "trial":
                await connection.close()
            async with tap(server.name, listing) as tapped:
                yield _Tapped(connection, tapped, listing, offer, shared=server.isolation == "condition")
        finally:
            await connection.close()


@attrs.frozen(eq=False)
class _Direct:
    """A server that agents connect to themselves; nobody watches."""

    offer: ToolOffer

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[McpServer]:
        yield McpServer(
            name=server.name,
            transport=server.transport,
            url=server.url,
            headers=server.headers,
            command=server.command,
            args=server.args,
            env=server.env,
            cwd=server.cwd,
            tools=self.offer.tools,
            timeout=server.timeout,
        )


@attrs.define(eq=False)
class _Tapped:
    """A server that agents reach through the tap."""

    connection: ServerConnection
    tap: Tap
    listing: Listing
    offer: ToolOffer
    shared: bool
    _company: Company = attrs.field(factory=Company, init=False)
    _turn: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _gone: bool = attrs.field(default=False, init=False)
    # A Python server costs most of a second of CPU to start, so no more start at a time than there are cores. Trials
    # that are under way are not limited: two isolated servers in a condition could otherwise wait for each other.
    _starts: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(os.cpu_count() or 1))

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[McpServer]:
        async with AsyncExitStack() as stack:
            if server.in_turn:
                await stack.enter_async_context(self._turn)
            own = await self._own(server, stack) if server.isolation == "trial" else None
            if own is None:
                await self._reach(self.connection)
            # A session of one's own with a server that others use, too, is no server of one's own.
            alone = own is not None and server.transport == "stdio"
            company = Company() if alone else self._company
            passage = Passage(own or self.connection, self.listing, server.meta, company.join())
            url = await stack.enter_async_context(self.tap.open(passage))
            yield McpServer(
                name=server.name,
                transport="http",
                url=url,
                tools=self.offer.tools,
                # The tap notices first that a server does not answer, and tells the agent why.
                timeout=server.timeout + 2 * CHECK_SECONDS,
                log=passage.log,
                channel=passage,
            )

    async def _own(self, server: ServerSpec, stack: AsyncExitStack) -> ServerConnection | None:
        """Connect to a server that no other trial uses, or to one that others use by a session of its own.

        Returns `None` if it does not come up beside the one that the trials share, as one may that locks a file.
        """
        connection = ServerConnection(_supervised(server), digest=self.offer.digest)
        stack.push_async_callback(connection.close)
        try:
            async with self._starts:
                await self._reach(connection)
        except ServerLostError as error:
            if not self.shared:
                raise
            _log.warning("a trial shares the server again that it lost, as it gets none of its own: %s", error)
            return None
        return connection

    async def _reach(self, connection: ServerConnection) -> None:
        """Wait for a live session. A server that somebody else starts again has `startup_timeout` for it, but once."""
        loop = asyncio.get_running_loop()
        patient = connection.server.transport != "stdio"
        until = loop.time() + connection.server.startup_timeout
        while True:
            try:
                await connection.upstream()
            except ServerLostError:
                if not patient or self._gone or loop.time() + _PAUSE > until:
                    self._gone = True
                    raise
                await asyncio.sleep(_PAUSE)
            else:
                self._gone = False
                return


def _supervised(server: ServerSpec) -> ServerSpec:
    """Return a server that keval starts, if it does, so that it ends with keval."""
    if server.transport != "stdio" or server.command is None:
        return server
    command, *args = supervised((server.command, *server.args))
    return attrs.evolve(server, command=command, args=tuple(args))
