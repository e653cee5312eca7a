"""A starter: opens connections to servers, as many at a time as there are cores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from keval.plugin import ServerLostError, ServerSpec, supervised
from keval_mcp.server.connection import ServerConnection
from keval_mcp.server.folder import in_folder

__all__ = ["Starter", "connection_to"]

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
    async def started(self, server: ServerSpec, digest: str | None) -> AsyncIterator[ServerConnection]:
        """Yield a live connection that nobody else uses. Raises ServerLostError; also if its tools have changed."""
        async with connection_to(server, digest) as connection:
            async with self.cores:
                await self.reach(connection)
            yield connection

    async def reach(self, connection: ServerConnection) -> None:
        """Wait for a live session. A server that somebody else starts again has `startup_timeout` for it, but once."""
        server, loop = connection.server, asyncio.get_running_loop()
        until = loop.time() + server.startup_timeout
        while True:
            try:
                await connection.upstream()
            except ServerLostError:
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
async def connection_to(server: ServerSpec, digest: str | None = None) -> AsyncIterator[ServerConnection]:
    """Yield a connection that is opened when it is first used, and ended with the folder that was made for its server.

    Raises:
        ServerLostError: the folder cannot be made.
    """
    async with in_folder(server) as placed:
        connection = ServerConnection(_supervised(placed), digest)
        try:
            yield connection
        finally:
            await connection.close()


def _supervised(server: ServerSpec) -> ServerSpec:
    """Return a server that keval starts, if it does, so that it ends with keval."""
    if server.transport != "stdio" or server.command is None:
        return server
    command, *args = supervised((server.command, *server.args))
    return attrs.evolve(server, command=command, args=tuple(args))
