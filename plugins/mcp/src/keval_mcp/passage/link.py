"""A link: how the requests of one attempt reach its server, which is live or played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from keval_mcp.server.audience import Audience, Member
from keval_mcp.server.patience import Patience

__all__ = ["Asking", "Heard", "Link"]

Heard: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Takes the parameters of a notification of progress."""


@attrs.define(eq=False)
class Asking:
    """A request of the agent on its way to the server, which may need several rounds (`Inputs`) within its `patience`.

    `sent` says whether the server got it. `aside` counts the seconds that are none of the request's: it took them to
    reach the server, and to read its tools again.
    """

    kind: Literal["call", "request"]
    method: str
    patience: Patience
    sent: bool = False
    aside: float = 0.0


class Link(Protocol):
    """Leads the requests of one attempt to its server."""

    @property
    def name(self) -> str:
        """The server's name."""
        ...

    @property
    def own(self) -> bool:
        """Whether no other attempt uses the server."""
        ...

    @property
    def audience(self) -> Audience:
        """Who answers what the server asks."""
        ...

    @property
    def bystander(self) -> bool:
        """Whether another attempt's call may be why this attempt has just lost the server."""
        ...

    def join(self, member: Member) -> None:
        """Let an attempt hear what the server says, until the link is closed."""
        ...

    async def declare(self, capabilities: Mapping[str, Any]) -> None:
        """Tell the server what the agent can do of what a server may ask."""
        ...

    async def ask(self, asking: Asking, params: Mapping[str, Any], heard: Heard | None) -> dict[str, Any]:
        """Send a request once with these parameters and return its result; `heard` gets its progress.

        If a call changed the server's tools, and the server said so, they are read again by then.

        Raises:
            ValueError: the answer is not the result of a tool call.
            MCPError: the server refuses it.
            CallTimeoutError: it does not answer in time, and lives.
            ServerLostError: it does not come up, or is lost.
            ReplayMissError: the server is played, and its recording has no such request here.
        """
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification. Raises ServerLostError and ReplayMissError."""
        ...

    async def close(self, *, well: bool) -> None:
        """Note that the attempt ends; `well` says that no request is under way and the server was not lost.

        Then its tools are read once more, as not every server says that they have changed.
        """
        ...
