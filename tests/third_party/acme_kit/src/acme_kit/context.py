"""A context with an MCP server of its own, which it only describes: keval connects to it."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs

from keval.plugin import ContextSource, Provision, ServerSpec, TrialInfo


@attrs.frozen
class Echo:
    """Gives agents a server with one tool."""

    greeting: str = "hello"

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        args = ("-m", "acme_kit.server", self.greeting)
        yield EchoSource(ServerSpec(label, "stdio", command=sys.executable, args=args))


@attrs.frozen
class EchoSource:
    """Gives the same server to every trial."""

    server: ServerSpec

    @property
    def servers(self) -> Sequence[ServerSpec]:
        return (self.server,)

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        yield Provision(f"This is attempt {trial.attempt} of repetition {trial.repetition}.", (self.server,))
