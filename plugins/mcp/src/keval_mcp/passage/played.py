"""The link to a server that is played: from a recording, without a connection."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs
from mcp import MCPError

from keval.plugin import ReplayMissError, ServerTape, ServerTraffic, TrafficError
from keval_mcp.passage.link import Asking, Heard
from keval_mcp.passage.marks import unmarked
from keval_mcp.passage.outcomes import error_in, lost_beside
from keval_mcp.server.audience import PROGRESS, Audience, Member
from keval_mcp.server.listing import Listing

__all__ = ["PlayedLink"]


@attrs.define(eq=False)
class PlayedLink:
    """Answers the requests of one attempt from `tape`; see `Link`.

    What the server asked is asked again: the agent, or the policy of `audience`, answers as it did.
    """

    tape: ServerTape
    audience: Audience
    own: bool = False
    bystander: bool = attrs.field(default=False, init=False)
    _member: Member | None = attrs.field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.audience.name

    def join(self, member: Member) -> None:
        self._member = member
        self.audience.members.append(member)
        self.tape.hear(partial(self._take, None))

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        self.audience.passed_on = capabilities

    async def ask(self, asking: Asking, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        asking.sent = True
        take = partial(self._take, heard)
        played = await self.tape.play(asking.kind, asking.method, unmarked(params), take)
        if played.error is not None:
            asking.sent = played.error.details.get("sent") is not False
            self.bystander = lost_beside(played.error)
            raise error_in(played.error)
        return dict(played.result or {})

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        played = await self.tape.play("notified", method, unmarked(params), partial(self._take, None))
        if played.error is not None:
            self.bystander = lost_beside(played.error)
            raise error_in(played.error)

    async def close(self, *, well: bool) -> None:
        try:
            await self.tape.play("closed", "", {}, partial(self._take, None))
        except ReplayMissError:
            pass  # the attempt ended otherwise than the recorded one, which what it asked for has shown
        finally:
            self.audience.members.clear()

    async def _take(self, heard: Heard | None, traffic: ServerTraffic) -> Mapping[str, Any] | TrafficError | None:
        """Pass on what the server asked, told or listed."""
        member = self._member
        if traffic.kind == "asked":
            try:
                return await self.audience.answer(traffic.method, traffic.params)
            except MCPError as refused:
                return TrafficError("refused", refused.message, code=refused.code, data=refused.data)
        if member is None:
            return None
        if traffic.kind == "listed":
            member.relisted(Listing.told(traffic.result or {}), traffic.error)
        elif traffic.method != PROGRESS:
            self.audience.tell([member], traffic.method, traffic.params)
        elif heard is not None:
            heard(traffic.params)
        return None
