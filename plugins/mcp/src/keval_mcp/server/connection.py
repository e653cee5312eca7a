"""A connection to a server that outlives the sessions with it, and servers that are started for one trial."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import attrs

from keval.errors import FailureKind, ServerLostError
from keval.execute.shielding import in_thread, settle
from keval.processes import supervised
from keval.seams.contexts import ServerSpec
from keval_mcp.server.audience import Audience
from keval_mcp.server.client import client_of
from keval_mcp.server.difference import difference
from keval_mcp.server.session import Listing
from keval_mcp.server.upstream import Upstream

TOOLS_CHANGED: FailureKind = "tools_changed"
"""The kind of failure of a trial whose server has other tools than before the first trial."""

_log = logging.getLogger("keval_mcp")


@attrs.define(eq=False)
class ServerConnection:
    """Holds one session with `server` and opens another when it was lost.

    A server that comes back with other tools than it listed first to a client with the same capabilities is refused, as
    its trials would be of another condition, unless its `dynamic_tools` says otherwise. The attempts that use it are
    told when it lists its tools anew. All connections with one server have the same `first` listings, by the
    capabilities that were declared, as JSON, and the same `start_seconds`: what each of its processes took for that.
    """

    server: ServerSpec
    first: dict[str, Listing] = attrs.field(factory=dict)
    start_seconds: list[float] = attrs.field(factory=list)
    audience: Audience = attrs.field(init=False)
    _upstream: Upstream | None = attrs.field(default=None, init=False)
    _connecting: asyncio.Task[Upstream] | None = attrs.field(default=None, init=False)
    _relistings: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.audience = Audience(self.server.name, client_of(self.server), self._relist_soon)

    async def declare(self, capabilities: Mapping[str, Any]) -> Listing:
        """Tell the server what an agent can do, and return what it lists then; a session begins anew for that.

        Raises:
            ServerLostError: it does not come up, or lists other tools than to a client like that before.
        """
        self.audience.passed_on = capabilities
        upstream = self._upstream
        if upstream is not None and upstream.alive and not upstream.listing.begins_sessions:
            listing = await upstream.relist(capabilities)
            if listing is None:
                able = ", ".join(capabilities) or "no capabilities"
                raise ServerLostError(f"server '{self.server.name}' did not list its tools to a client with {able}")
            return self.compared(listing)
        await self.close()
        # Otherwise `_connect` would warn of a connection that was lost, and tell of the list as one that changed.
        self._upstream = None
        return self.compared((await self.upstream()).listing)

    async def upstream(self) -> Upstream:
        """Return a live session. All who ask while one is being opened share the outcome.

        Raises:
            ServerLostError: the server does not come up, or has changed its tools.
        """
        if self._upstream is not None and self._upstream.alive:
            return self._upstream
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(), name=f"connecting to {self.server.name}")
            self._connecting.add_done_callback(self._connected)
        # A caller that is cancelled must not cancel what the others wait for.
        return await asyncio.shield(self._connecting)

    async def relist(self) -> None:
        """Let a server that lives list its tools again, and tell the attempts what it lists."""
        if self._upstream is not None and self._upstream.alive:
            listing = await self._upstream.relist(self.audience.passed_on)
            if listing is not None:
                self._tell(listing)

    async def relisted(self) -> None:
        """Wait until the tools are read again, if the server has just said that they have changed."""
        if self._relistings:
            await asyncio.wait(self._relistings)

    async def close(self) -> None:
        """End the session, and the opening of one."""
        for relisting in [*self._relistings]:
            relisting.cancel()
            await settle(relisting)
        try:
            if self._connecting is not None:
                self._connecting.cancel()
                await settle(self._connecting)
        finally:
            if self._upstream is not None:
                await self._upstream.close()

    async def _connect(self) -> Upstream:
        before = self._upstream
        if before is not None:
            _log.warning("server '%s' is connected to again: %s", self.server.name, before.reason)
            await before.close()
        began = time.perf_counter()
        upstream = await Upstream.connect(self.server, self.server.startup_timeout, self.audience)
        if self.server.transport == "stdio":
            self.start_seconds.append(time.perf_counter() - began)
        try:
            self.compared(upstream.listing)
        except ServerLostError:
            await upstream.close()
            raise
        self._upstream = upstream
        if before is not None:
            self._tell(upstream.listing)
        return upstream

    def compared(self, listing: Listing) -> Listing:
        """Return what to offer of what the server lists: what it listed first to such a client, if that is to stay.

        Raises:
            ServerLostError: it listed other tools first to a client with the same capabilities, and that is no use; or
                it spoke another revision.
        """
        first = self.first.setdefault(json.dumps(self.audience.capabilities, sort_keys=True), listing)
        if self.server.dynamic_tools == "fail" and first.digest != listing.digest:
            raise ServerLostError(
                f"server '{self.server.name}' came back with other tools than at the start of the run:"
                f" {difference(first, listing)}; keep it unchanged while the run lasts, or say by dynamic_tools that it"
                " may change",
                kind=TOOLS_CHANGED,
            )
        if first.version != listing.version:  # what agents are told of it, and how they are, depends on that
            raise ServerLostError(
                f"server '{self.server.name}' came back with the revision {listing.version} of MCP in place of"
                f" {first.version}; name one by protocol"
            )
        return first if self.server.dynamic_tools == "freeze" else listing

    def _relist_soon(self) -> None:
        relisting = asyncio.create_task(self.relist(), name=f"listing the tools of {self.server.name}")
        self._relistings.add(relisting)
        relisting.add_done_callback(self._relistings.discard)

    def _tell(self, listing: Listing) -> None:
        for member in [*self.audience.members]:
            member.relisted(listing)

    def _connected(self, task: asyncio.Task[Upstream]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # seen, also when everyone who waited has been cancelled


_PAUSE = 0.25
"""Seconds until a server that is starting again is tried again."""


@attrs.define(eq=False)
class Starter:
    """Starts servers, or sessions with remote ones, each for one trial; `cores` bounds how many at a time.

    A Python server costs most of a second of CPU to start. Trials that are under way are not limited: two isolated
    servers in a condition could otherwise wait for each other.
    """

    cores: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(os.cpu_count() or 1))
    _gone: set[str] = attrs.field(factory=set, init=False)
    """URLs of servers that did not come back in their time; nobody waits for them again."""

    @asynccontextmanager
    async def started(
        self, server: ServerSpec, first: ServerConnection, capabilities: Mapping[str, Any] = MappingProxyType({})
    ) -> AsyncIterator[ServerConnection]:
        """Yield a live connection that nobody else uses, to the server of `first`, for an agent with `capabilities`.

        Raises:
            ServerLostError: it does not come up, or has other tools.
        """
        async with connection_to(server, first) as connection:
            connection.audience.passed_on = capabilities
            await self.reach(connection, self.cores)
            yield connection

    async def reach(self, connection: ServerConnection, slots: asyncio.Semaphore | None = None) -> None:
        """Wait for a live session. A server that somebody else starts again has `startup_timeout` for it, but once.

        One of `slots` is held while it is tried, and none between two tries.
        """
        server, loop = connection.server, asyncio.get_running_loop()
        until = loop.time() + server.startup_timeout
        while True:
            try:
                async with slots or nullcontext():
                    await connection.upstream()
            except ServerLostError:
                # Only a server that keval does not start itself may be starting again by now.
                if server.url is None or server.url in self._gone:
                    raise
                if loop.time() + _PAUSE > until:
                    self._gone.add(server.url)
                    raise
                await asyncio.sleep(_PAUSE)
            else:
                self._gone.discard(server.url or "")
                return


@asynccontextmanager
async def connection_to(server: ServerSpec, first: ServerConnection | None = None) -> AsyncIterator[ServerConnection]:
    """Yield a connection that is opened when it is first used, and ended with the folder that was made for its server.

    `first` is the connection by which the server was known first, if this is another one.

    Raises:
        ServerLostError: the folder cannot be made.
    """
    async with in_folder(server) as placed:
        started = placed
        if placed.transport == "stdio" and placed.command is not None:
            command, *args = supervised((placed.command, *placed.args))
            started = attrs.evolve(placed, command=command, args=tuple(args))
        connection = ServerConnection(started)
        if first is not None:
            connection.first, connection.start_seconds = first.first, first.start_seconds
        try:
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def in_folder(server: ServerSpec) -> AsyncIterator[ServerSpec]:
    """Yield the server with the folder that it runs in; one that is made for it is removed afterwards.

    Raises:
        ServerLostError: the folder cannot be made, or what it begins with cannot be copied.
    """
    if server.folder is None:
        yield server
        return
    copied = server.folder.copy
    async with AsyncExitStack() as stack:
        try:
            # A process that was killed may be seen for a moment after, and what it wrote last is nobody's.
            folder = TemporaryDirectory(prefix="keval-server-", ignore_cleanup_errors=True)
            # In a thread, as a busy disk would hold up all trials.
            stack.push_async_callback(in_thread, folder.cleanup)
            if copied is not None:
                await in_thread(shutil.copytree, copied, folder.name, symlinks=True, dirs_exist_ok=True)
        except OSError as error:
            raise ServerLostError(f"server '{server.name}' gets no folder of its own: {error}") from error
        yield attrs.evolve(server, cwd=folder.name, folder=None)
