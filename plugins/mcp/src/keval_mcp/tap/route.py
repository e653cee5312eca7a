"""A route: what the tap does with the HTTP requests of one attempt at a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from starlette.types import Receive, Scope, Send

from keval_mcp.passage.passage import Passage
from keval_mcp.tap.messages import encoded, received, refused, respond
from keval_mcp.tap.plain import needs_session, plain_answer
from keval_mcp.tap.relay import Relay

__all__ = ["Route", "session_of"]

_UNKNOWN = MCPError(-32600, "Session not found")


@attrs.define(eq=False)
class Route:
    """Leads to `passage`: plainly, a request at a time, unless the server or the agent needs a session.

    With `always_sessions` every client gets one, by which clients are told apart.
    """

    passage: Passage
    always_sessions: bool = False
    _relays: dict[str, Relay] = attrs.field(factory=dict, init=False)

    @property
    def sessions(self) -> tuple[str, ...]:
        """The ids of the sessions that are open."""
        return tuple(self._relays)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        session = session_of(scope)
        relay = None if session is None else self._relays.get(session)
        match scope["method"]:
            case _ if session is not None and relay is None:
                await respond(send, 404, encoded(refused(None, _UNKNOWN)))
            case "POST":
                message = await received(receive, send)
                if message is not None:
                    await self.post(message, relay, send)
            case "GET" if relay is not None:
                await relay.get(receive, send)
            case "DELETE" if relay is not None:
                del self._relays[relay.id]
                await relay.close()
                await respond(send, 200)
            case _:  # without a session there is none to end, and nothing that the server would say unasked
                await respond(send, 405, b"", (b"allow", b"POST"))

    async def post(self, message: Mapping[str, Any], relay: Relay | None, send: Send) -> None:
        """Answer a message, of the session `relay` if there is one."""
        if relay is not None:
            await relay.post(message, send)
            return
        given = message.get("params", {}).get("capabilities")
        capabilities = given if isinstance(given, dict) else {}
        if message.get("method") == "initialize" and (
            self.always_sessions or needs_session(self.passage, capabilities)
        ):
            begun = Relay(self.passage)
            self._relays[begun.id] = begun
            await begun.begin(message, send)
            return
        answer = await plain_answer(self.passage, message)
        await respond(send, 202 if answer is None else 200, b"" if answer is None else encoded(answer))

    async def close(self) -> None:
        """End all sessions, and the calls still under way."""
        relays, self._relays = [*self._relays.values()], {}
        for relay in relays:
            await relay.close()
        await self.passage.close()


def session_of(scope: Scope) -> str | None:
    """Return the id of the session that a request is part of."""
    for name, value in scope["headers"]:
        if name == b"mcp-session-id":
            found: str = value.decode("latin-1")
            return found
    return None
