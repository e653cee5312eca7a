"""The context sources: a server that is up, as the trials of a condition get it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import attrs

from keval import Context, ContextSource, McpServer, PreflightError, Sample, ServerLostError, ToolOffer
from keval_mcp.facts import Facts, about, as_meta, tell
from keval_mcp.line import Line
from keval_mcp.link import Link
from keval_mcp.tap import Tap, tap
from keval_mcp.terms import Terms
from keval_mcp.upstream import CHECK_SECONDS

__all__ = ["serve"]

# Python prints the warnings of libraries that nobody configured logging for; what the SDK has to say of a server
# reaches the user in keval's own errors.
logging.getLogger("mcp").addHandler(logging.NullHandler())


@attrs.frozen(eq=False)
class _Direct:
    """Agents connect to the server themselves; nobody watches."""

    server: McpServer
    terms: Terms
    facts: Facts
    offers: Sequence[ToolOffer]

    @asynccontextmanager
    async def open(self, sample: Sample, trial: str) -> AsyncIterator[Context]:
        server = tell(self.server, about(sample, trial, self.facts))
        yield Context(trial, self.terms.instructions, (server,))


@attrs.frozen(eq=False)
class _Tapped:
    """Agents reach the server through the tap."""

    link: Link
    tap: Tap
    terms: Terms
    facts: Facts
    offers: Sequence[ToolOffer]
    # A Python server costs most of a second of CPU to start, so no more start at a time than there are cores. Trials
    # that are under way are not limited: two isolated servers in a condition could otherwise wait for each other.
    _starts: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(os.cpu_count() or 1))

    @asynccontextmanager
    async def open(self, sample: Sample, trial: str) -> AsyncIterator[Context]:
        told = about(sample, trial, self.facts)
        async with AsyncExitStack() as stack:
            link = self.link
            if self.terms.isolation == "trial":
                link = attrs.evolve(link, server=tell(link.server, told))
                stack.push_async_callback(link.close)
                async with self._starts:
                    await link.upstream()
            else:
                await link.upstream()
            line = Line(link, as_meta(told))
            url = await stack.enter_async_context(self.tap.open(line))
            server = McpServer(
                name=link.server.name,
                transport="http",
                url=url,
                tools=self.offers[0].tools,
                # The tap notices first that a server does not answer, and tells the agent why.
                timeout=self.terms.timeout + 2 * CHECK_SECONDS,
                log=line.log,
            )
            yield Context(trial, self.terms.instructions, (server,))


@asynccontextmanager
async def serve(server: McpServer, terms: Terms, facts: Facts) -> AsyncIterator[ContextSource]:
    """Bring `server` up, list its tools and offer it to trials on the given terms.

    Raises:
        PreflightError: it does not come up, or has no tools.
    """
    link = Link(server, terms.startup_timeout)
    try:
        try:
            listing = (await link.upstream()).listing
        except ServerLostError as error:
            raise PreflightError(str(error)) from error
        if not listing.tools:
            raise PreflightError(
                f"server '{server.name}' lists no tools, so it changes nothing for an agent; check its configuration"
            )
        link.digest = listing.digest
        offers = (ToolOffer(server.name, listing.names, listing.digest),)
        if not terms.tap:
            await link.close()
            yield _Direct(attrs.evolve(server, tools=listing.names), terms, facts, offers)
            return
        if terms.isolation == "trial":
            await link.close()
        async with tap(server.name, listing) as tapped:
            yield _Tapped(link, tapped, terms, facts, offers)
    finally:
        await link.close()
