"""What a trial is granted for losing a server that it may share with others."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from keval.contexts import ServerSpec
from keval.errors import ServerLostError
from keval.servers import McpServer

__all__ = ["Losses"]

_UNCOUNTED = 3
"""How many attempts of a trial do not count because a call of another trial may have cost it a server."""
_PARALLEL = 2
"""How many of these it takes until the trial waits for the turn of its own."""


@attrs.define
class Losses:
    """What became of the servers of one trial, over all its attempts.

    A trial that has lost a server gets servers of its own from then on. If its call was the cause, it harms no other
    trial again; if it was not, no other trial harms it again. A server that keval does not start can give it no more
    than a session; if that is lost, too, such trials take turns.
    """

    _lost: bool = False
    _stood_by: bool = False
    _uncounted: int = 0

    def note(self, servers: Iterable[McpServer]) -> None:
        """Note which servers an attempt has lost."""
        logs = [server.log for server in servers if server.log is not None and server.log.lost is not None]
        self._lost = self._lost or any(log.bystander or log.kind == ServerLostError.kind for log in logs)
        self._stood_by = bool(logs) and all(log.bystander for log in logs)

    def give(self, server: ServerSpec) -> ServerSpec:
        """Return a server as the next attempt gets it."""
        if not self._lost:
            return server
        return attrs.evolve(server, isolation="trial", in_turn=self._uncounted >= _PARALLEL)

    def spares(self) -> bool:
        """Return whether the attempt noted last does not count; ask once for each."""
        spared = self._stood_by and self._uncounted < _UNCOUNTED
        self._uncounted += spared
        return spared
