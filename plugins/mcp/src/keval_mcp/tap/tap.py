"""The tap: a loopback MCP server that stands for another one, with a URL for every attempt at a trial."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
from starlette.types import Receive, Scope, Send

from keval_loopback import listen, refusal
from keval_loopback.serving import serve
from keval_mcp.passage.passage import Passage
from keval_mcp.tap.messages import respond
from keval_mcp.tap.route import Route

__all__ = ["KEEP_ALIVE", "Tap", "tap"]

KEEP_ALIVE = 24 * 60 * 60
"""Seconds for which an idle connection is kept."""


@attrs.define(eq=False)
class Tap:
    """An ASGI application that finds the passage that a URL stands for."""

    port: int
    _routes: dict[str, Route] = attrs.field(factory=dict, init=False)

    @asynccontextmanager
    async def open(self, passage: Passage) -> AsyncIterator[str]:
        """Yield the URL that leads to `passage`; afterwards the URL is unknown and no call is under way."""
        path = f"/{secrets.token_urlsafe(16)}/mcp"
        route = self._routes[path] = Route(passage)
        try:
            yield f"http://127.0.0.1:{self.port}{path}"
        finally:
            del self._routes[path]
            await route.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get(scope["path"])
        if route is None:
            await respond(send, 404, b'"no attempt at a trial has this URL now"')
        elif status := refusal(scope, self.port):
            await respond(send, status)
        else:
            await route.serve(scope, receive, send)


@asynccontextmanager
async def tap(label: str) -> AsyncIterator[Tap]:
    """Serve attempts on loopback until the end of the context."""
    listener = listen()
    tapped = Tap(listener.getsockname()[1])
    # A connection closed here while idle could cost the agent that is just reusing it a call.
    async with serve(tapped, listener=listener, keep_alive=KEEP_ALIVE):
        yield tapped
