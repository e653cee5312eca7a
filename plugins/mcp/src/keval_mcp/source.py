"""What a context with one MCP server gives to each trial."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs

from keval.plugin import Provision, ServerSpec, TrialInfo
from keval_mcp.facts import Facts, about, as_meta, as_texts, no_facts

__all__ = ["ServerSource"]


@attrs.frozen(eq=False)
class ServerSource:
    """Gives every trial one server and its instructions; `facts` are what the server is told about the sample.

    The server is told with every call. One that serves a single trial may be told in its headers or its environment,
    too; see `ServerSpec.told`.
    """

    server: ServerSpec
    instructions: str = ""
    facts: Facts = no_facts

    @property
    def servers(self) -> Sequence[ServerSpec]:
        """The one server."""
        return (self.server,)

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        """Give the server to one attempt at a trial."""
        told = about(trial, self.facts)
        server = attrs.evolve(self.server, meta=as_meta(told), told=as_texts(told))
        yield Provision(self.instructions, (server,))
