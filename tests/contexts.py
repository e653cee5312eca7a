"""Brings a context up as a run does: its servers connected, their tools listed, and each trial's way to them opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from keval import Sample
from keval.plugin import Context, ContextSource, Intervention, McpServer, ServerSpec, TrialInfo
from keval.records.cassettes import ServerCassette, ServerTrafficLog
from keval.records.servers import ToolListing
from keval.seams.contexts import Isolation, ServerUse
from keval.seams.infrastructure import ConnectedServer
from keval_mcp.proxy import McpProxy

__all__ = ["Started", "started"]


@attrs.frozen
class Started:
    """A context that is up; `tool_listings` are what its servers listed."""

    source: ContextSource
    servers: Mapping[str, ConnectedServer]
    tool_listings: Sequence[ToolListing]

    @asynccontextmanager
    async def open(
        self, sample: Sample, trial: str, isolation: Isolation | None = None, **changes: Any
    ) -> AsyncIterator[Context]:
        """Enter what an agent gets for one attempt at a trial; `changes` are made to the use of its servers."""
        info = TrialInfo(trial, sample, "agent", "condition")
        async with AsyncExitStack() as stack:
            provision = await stack.enter_async_context(self.source.open(info))
            servers: list[McpServer] = []
            for server in provision.servers:
                assert isinstance(server, ServerSpec)
                use = ServerUse(attrs.evolve(server, isolation=isolation or server.isolation), **changes)
                servers.append(await stack.enter_async_context(self.servers[server.name].open(use)))
            yield Context(trial, provision.instructions, tuple(servers), history=sample.history)


@asynccontextmanager
async def started(
    provider: Any,
    label: str,
    *,
    start_ahead: int = 0,
    traffic_log: ServerTrafficLog | None = None,
    cassette: ServerCassette | None = None,
    interventions: tuple[Intervention, ...] = (),
    **facts: Any,
) -> AsyncIterator[Started]:
    """Start a context provider and connect to its servers; `start_ahead` is how many trials are to come.

    `traffic_log` keeps what each server lists, or it is `cassette`. `interventions` are made to all.
    """
    async with AsyncExitStack() as stack:
        source: ContextSource = await stack.enter_async_context(provider.start(label, **facts))
        connected: dict[str, ConnectedServer] = {}
        for server in source.servers:
            assert isinstance(server, ServerSpec)
            planned = ServerUse(
                server, start_ahead=start_ahead, traffic_log=traffic_log, cassette=cassette, interventions=interventions
            )
            connected[server.name] = await stack.enter_async_context(McpProxy().connect(planned))
        yield Started(source, connected, [server.tool_listing for server in connected.values()])
