"""What a request to a server raises, and the form in which a recording keeps that."""

from __future__ import annotations

from mcp import MCPError
from mcp.types import INTERNAL_ERROR

from keval.errors import ServerLostError
from keval.records.cassettes import TrafficError
from keval_mcp.server.upstream import CallLostError, CallTimeoutError

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
