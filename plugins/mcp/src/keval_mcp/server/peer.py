"""The peer of a server: whoever is at the other end of a session with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["Peer"]


class Peer(Protocol):
    """Whom a server talks to."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server is told that its client can do."""
        ...

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request of the server. Raises MCPError."""
        ...

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        """Take a notification of the server."""
        ...
