"""The link to a server that is played as far as its recording goes, and asked live for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from keval.plugin import ReplayMissError
from keval_mcp.passage.link import Asking, Heard, Link
from keval_mcp.passage.live import LiveLink
from keval_mcp.server.audience import Audience, Member

__all__ = ["BackedLink"]


@attrs.frozen(eq=False)
class BackedLink:
    """Asks `played` first, and `live` what that does not have; see `Link`. What the live server says is heard."""

    played: Link
    live: LiveLink

    @property
    def name(self) -> str:
        return self.live.name

    @property
    def own(self) -> bool:
        return self.live.own

    @property
    def audience(self) -> Audience:
        return self.live.audience

    @property
    def bystander(self) -> bool:
        return self.live.bystander

    def join(self, member: Member) -> None:
        self.live.join(member)

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        await self.live.declare(capabilities)

    async def ask(self, asking: Asking, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        try:
            return await self.played.ask(asking, params, heard)
        except ReplayMissError:
            asking.sent = False
            return await self.live.ask(asking, params, heard)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self.live.notify(method, params)

    async def close(self, *, well: bool) -> None:
        await self.live.close(well=well)
