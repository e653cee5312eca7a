"""The link to a server that is replayed from a recording."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs
from mcp import MCPError

from keval.records.cassettes import ReplayMissError, ServerCassette, ServerTraffic, TrafficError
from keval_mcp.passage.link import AgentRequest, Heard, error_in, lost_beside, recorded_error, unmarked
from keval_mcp.server.audience import PROGRESS, Audience, Member
from keval_mcp.server.session import Listing


@attrs.define(eq=False)
class ReplayedLink:
    """Answers the requests of one attempt from `cassette`, as `LiveLink` does; what it lacks raises ReplayMissError.

    What the server asked is asked again: the agent, or the policy of `audience`, answers as it did.
    """

    cassette: ServerCassette
    audience: Audience
    own: bool
    bystander: bool = attrs.field(default=False, init=False)
    _member: Member | None = attrs.field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.audience.name

    def join(self, member: Member) -> None:
        self._member = member
        self.audience.members.append(member)
        self.cassette.hear(partial(self._take, None))

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        self.audience.passed_on = capabilities

    async def ask(self, agent_request: AgentRequest, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        agent_request.sent = True
        take = partial(self._take, heard)
        played = await self.cassette.play(agent_request.kind, agent_request.method, unmarked(params), take)
        if played.error is not None:
            agent_request.sent = played.error.details.get("sent") is not False
            self.bystander = lost_beside(played.error)
            raise error_in(played.error)
        return dict(played.result or {})

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        played = await self.cassette.play("notified", method, unmarked(params), partial(self._take, None))
        if played.error is not None:
            self.bystander = lost_beside(played.error)
            raise error_in(played.error)

    async def close(self, *, well: bool) -> None:
        try:
            await self.cassette.play("closed", "", {}, partial(self._take, None))
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
                return recorded_error(refused)
        if member is None:
            return None
        if traffic.kind == "listed":
            member.relisted(Listing.told(traffic.result or {}), traffic.error)
        elif traffic.method != PROGRESS:
            self.audience.tell([member], traffic.method, traffic.params)
        elif heard is not None:
            heard(traffic.params)
        return None
