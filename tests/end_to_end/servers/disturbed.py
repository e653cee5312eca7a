"""An endpoint with faults: what `double/disturb` does in a run, before the connections of any application."""

from __future__ import annotations

import asyncio
from collections import Counter

import attrs
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keval_doubles.disturb import PAGE, Disturb, Fault
from keval_loopback.serving import CLOSE


@attrs.define(eq=False)
class Disturbed:
    """Makes the faults that `draw` chooses in what `app` answers, and counts them in `made`."""

    app: ASGIApp
    draw: Disturb
    made: Counter[Fault] = attrs.field(factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        asker = [request.headers.get(f"x-keval-{name}", "") for name in ("trial", "repetition")]
        body = await request.body()
        fault = self.draw.fault(f"{request.url.path} {asker}".encode() + body)
        if fault is not None:
            self.made[fault] += 1
        if fault is None or fault.stall_seconds is not None:
            await asyncio.sleep((fault and fault.stall_seconds) or 0)
            await self.app(scope, _again(body, receive), send)
        elif fault.status is not None:
            told = fault.retry_after_header
            error = {"error": {"message": "refused on purpose", "type": "fault", "code": None, "param": None}}
            headers = {} if told is None else {"retry-after": told}
            await JSONResponse(error, fault.status, headers)(scope, receive, send)
        elif fault.content_type is not None:
            await Response(PAGE, media_type=fault.content_type)(scope, receive, send)
        else:
            if fault.drop != "before":
                await self._half(scope, _again(body, receive), send, whole=fault.truncate)
            if fault.drop is not None:
                scope["state"][CLOSE]()

    async def _half(self, scope: Scope, receive: Receive, send: Send, *, whole: bool) -> None:
        """Send the first half of the answer, as if it were the `whole`, or with more to come."""
        start: list[Message] = []
        pieces: list[bytes] = []

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
            else:
                pieces.append(message.get("body", b""))

        await self.app(scope, receive, keep)
        body = b"".join(pieces)
        # The length that is announced is not the one that comes.
        headers = [pair for pair in start[0]["headers"] if pair[0] != b"content-length"]
        await send({**start[0], "headers": headers})
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": not whole})


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read once more."""
    first = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def read() -> Message:
        return next(first, None) or await receive()

    return read
