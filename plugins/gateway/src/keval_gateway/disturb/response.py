"""How a fault is made at the level of HTTP, by the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from keval_gateway.chat import ModelFault
from keval_gateway.disturb.damage import PAGE, first_half, refusal
from keval_gateway.disturb.faults import Fault
from keval_loopback.serving import CLOSE

__all__ = ["disturbed"]


async def disturbed(
    fault: Fault, answer: Callable[[], Awaitable[Response]], refused: Callable[[ModelFault], Response]
) -> Response:
    """Return the response to a request that a fault hits.

    `answer` makes the right one, and `refused` renders a refusal.
    """
    if fault.status is not None:
        response = refused(refusal(fault.status))
        if fault.retry_after_header is not None:
            response.headers["retry-after"] = fault.retry_after_header
        return response
    if fault.content_type is not None:
        return Response(PAGE, media_type=fault.content_type)
    if fault.drop == "before":
        return _Dropped()
    if fault.stall_seconds is not None:
        await asyncio.sleep(fault.stall_seconds)
        return await answer()
    right = await answer()
    body = await _whole(right)
    if fault.truncate:
        return Response(first_half(body), right.status_code, media_type=right.headers["content-type"])
    return _Dropped(Response(body, right.status_code, media_type=right.headers["content-type"]))


async def _whole(response: Response) -> bytes:
    if not isinstance(response, StreamingResponse):
        return bytes(response.body)
    chunks = [chunk async for chunk in response.body_iterator]
    return b"".join(chunk.encode() if isinstance(chunk, str) else bytes(chunk) for chunk in chunks)


class _Dropped(Response):
    """Closes the connection: before anything is sent, or in the middle of a response."""

    def __init__(self, begun: Response | None = None) -> None:
        super().__init__()
        self._begun = begun

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (begun := self._begun) is not None:
            await send({"type": "http.response.start", "status": begun.status_code, "headers": begun.raw_headers})
            await send({"type": "http.response.body", "body": first_half(bytes(begun.body)), "more_body": True})
        scope["state"][CLOSE]()
        while (await receive())["type"] != "http.disconnect":
            pass
