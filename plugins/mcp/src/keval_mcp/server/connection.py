"""A connection to a server that outlives the sessions with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import attrs

from keval.plugin import ServerLostError, ServerSpec
from keval_mcp.server.audience import Audience
from keval_mcp.server.listing import Listing
from keval_mcp.server.upstream import Upstream
from keval_mcp.settle import settle

__all__ = ["TOOLS_CHANGED", "ServerConnection"]

TOOLS_CHANGED = "tools_changed"
"""The kind of failure of a trial whose server has other tools than before the first trial."""

_log = logging.getLogger("keval_mcp")


@attrs.define(eq=False)
class ServerConnection:
    """Holds one session with `server` and opens another when it was lost.

    With a `digest`, a server that comes back with other tools is refused, as its trials would be of another condition,
    unless its `dynamic_tools` says otherwise. The attempts that use it are told when it lists its tools anew.
    """

    server: ServerSpec
    digest: str | None = None
    audience: Audience = attrs.field(init=False)
    _upstream: Upstream | None = attrs.field(default=None, init=False)
    _connecting: asyncio.Task[Upstream] | None = attrs.field(default=None, init=False)
    _relistings: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.audience = Audience(self.server.name, self.server.policy, self._relist_soon)

    async def declare(self, capabilities: Mapping[str, Any]) -> bool:
        """Tell the server what an agent can do, in a session of its own for that; return whether it began anew."""
        if capabilities == self.audience.passed_on:
            return False
        self.audience.passed_on = capabilities
        await self.close()
        self._upstream = None
        return True

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
        return await asyncio.shield(self._connecting)

    async def relist(self) -> None:
        """Let a server that lives list its tools again, and tell the attempts what it lists."""
        if self._upstream is not None and self._upstream.alive:
            listing = await self._upstream.relist()
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
        if self._upstream is not None:
            _log.warning("server '%s' is connected to again: %s", self.server.name, self._upstream.reason)
            await self._upstream.close()
        upstream = await Upstream.connect(self.server, self.server.startup_timeout, self.audience)
        changed = self.digest is not None and self.digest != upstream.listing.digest
        if changed and self.server.dynamic_tools == "fail":
            await upstream.close()
            raise ServerLostError(
                f"server '{self.server.name}' came back with other tools than at the start of the run;"
                " keep it unchanged while the run lasts, or say by dynamic_tools that it may change",
                kind=TOOLS_CHANGED,
            )
        self._upstream = upstream
        self._tell(upstream.listing)
        return upstream

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
