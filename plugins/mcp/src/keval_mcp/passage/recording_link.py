"""The link to a server whose traffic is recorded, and errors as a recording keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp.types import INTERNAL_ERROR

from keval.plugin import ServerLostError, ServerTrafficLog
from keval.records.cassettes import TrafficError
from keval_mcp.passage.link import AgentRequest, ForwardingLink, Heard, unmarked
from keval_mcp.server.audience import PROGRESS
from keval_mcp.server.upstream import CallLostError, CallTimeoutError


@attrs.frozen(eq=False)
class RecordingLink(ForwardingLink):
    """Passes everything on to `link`, and keeps each request with what came of it; see `Link`.

    What is cancelled has no end. What the server says and asks by itself is kept where it is heard.
    """

    traffic_log: ServerTrafficLog

    async def ask(self, agent_request: AgentRequest, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        number = self.traffic_log.begin(agent_request.kind, agent_request.method, unmarked(params))

        def keep_heard(progress: Mapping[str, Any]) -> None:
            if heard is not None:
                self.traffic_log.end(self.traffic_log.begin("told", PROGRESS, progress, during=number))
                heard(progress)

        try:
            result = await self.link.ask(agent_request, params, keep_heard if heard is not None else None)
        except FAILURES as error:
            self.traffic_log.end(number, error=recorded_error(error, sent=agent_request.sent, bystander=self.bystander))
            raise
        self.traffic_log.end(number, result)
        return result

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        number = self.traffic_log.begin("notified", method, unmarked(params))
        try:
            await self.link.notify(method, params)
        except ServerLostError as error:
            self.traffic_log.end(number, error=recorded_error(error, bystander=self.bystander))
            raise
        self.traffic_log.end(number)

    async def close(self, *, well: bool) -> None:
        number = self.traffic_log.begin("closed")
        await self.link.close(well=well)
        self.traffic_log.end(number)


FAILURES = (MCPError, CallTimeoutError, ServerLostError, ValueError)
"""What a request to a server raises."""


def recorded_error(error: Exception, *, sent: bool = True, bystander: bool = False) -> TrafficError:
    """Return what a recording keeps of one of `FAILURES`.

    `sent` says whether the server got the request, and `bystander` whether another attempt's call may be why it was
    lost.
    """
    if isinstance(error, MCPError):
        return TrafficError("refused", error.message, code=error.code, data=error.data)
    if isinstance(error, CallTimeoutError):
        return TrafficError("timeout", str(error))
    if isinstance(error, ServerLostError):
        by_itself = isinstance(error, CallLostError)
        details = {"sent": sent, "bystander": bystander and not by_itself}
        return TrafficError("call_lost" if by_itself else "lost", str(error), failure=error.kind, details=details)
    return TrafficError("no_result", str(error))


def error_in(error: TrafficError) -> Exception:
    """Return what a recorded request raised."""
    match error.kind:
        case "refused":
            return MCPError(INTERNAL_ERROR if error.code is None else error.code, error.message, error.data)
        case "timeout":
            return CallTimeoutError(error.message)
        case "call_lost":
            return CallLostError(error.message, kind=error.failure)
        case "lost":
            return ServerLostError(error.message, kind=error.failure)
    return ValueError(error.message)


def lost_beside(error: TrafficError) -> bool:
    """Return whether another attempt's call may be why a recorded attempt lost its server."""
    return error.details.get("bystander") is True
