"""The link to a server that keval is connected to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from keval.plugin import ServerLostError, TrafficError
from keval_mcp.passage.company import Place
from keval_mcp.passage.link import Asking, Heard
from keval_mcp.passage.marks import marked
from keval_mcp.server.audience import Audience, Member
from keval_mcp.server.connection import ServerConnection
from keval_mcp.server.upstream import Upstream

__all__ = ["LiveLink"]


@attrs.define(eq=False)
class LiveLink:
    """Sends the requests of one attempt by `connection`, marked with `meta`; see `Link`.

    `place` says whether a loss of the server may be due to another attempt's call.
    """

    connection: ServerConnection
    meta: Mapping[str, Any]
    place: Place
    own: bool = False
    _member: Member | None = attrs.field(default=None, init=False)
    _first: Upstream | None = attrs.field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.connection.server.name

    @property
    def audience(self) -> Audience:
        return self.connection.audience

    @property
    def bystander(self) -> bool:
        return self.place.bystander

    def join(self, member: Member) -> None:
        self._member = member
        self.audience.members.append(member)

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        if await self.connection.declare(capabilities):
            self._first = None

    async def ask(self, asking: Asking, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        before = time.perf_counter()
        upstream = await self._reach()
        asking.sent = True
        asking.aside += time.perf_counter() - before
        request = upstream.call if asking.kind == "call" else partial(upstream.request, asking.method)
        with marked(params, self.meta, self.audience, heard) as sent, self.place.calling():
            result = await request(sent, patience=asking.patience)
        before = time.perf_counter()
        await self.connection.relisted()
        asking.aside += time.perf_counter() - before
        return result

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await (await self._reach()).notify(method, params)

    async def close(self, *, well: bool) -> None:
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
