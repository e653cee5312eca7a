"""What a server offers to the trials of a condition, and how each of them reaches it through the tap."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs

from keval.plugin import CallLog, McpServer, ServerSpec, ServerTape, Sharing, ToolOffer
from keval_mcp.changes import Changes
from keval_mcp.passage.kept import KeptLink
from keval_mcp.passage.link import Link
from keval_mcp.passage.offered import Offered
from keval_mcp.passage.outcomes import error_in
from keval_mcp.passage.passage import Passage
from keval_mcp.passage.played import PlayedLink
from keval_mcp.passage.telling import Telling
from keval_mcp.server.audience import Audience
from keval_mcp.server.listing import Listing
from keval_mcp.server.patience import Patience
from keval_mcp.server.upstream import CHECK_SECONDS
from keval_mcp.sharing import sharing_of
from keval_mcp.tap.channel import Channel
from keval_mcp.tap.tap import Tap, tap

__all__ = ["Offering", "PlayedServer", "Tapped", "tapped"]


@attrs.frozen
class Offering:
    """What a server offers to the trials of a condition."""

    changes: Changes
    offer: ToolOffer
    sharing: Sharing

    @classmethod
    def of(cls, server: ServerSpec, listing: Listing) -> Offering:
        """Return what a server that lists this offers. Raises InterventionError."""
        if not server.server_instructions:
            listing = attrs.evolve(listing, instructions=None)
        changes = Changes.of(server.interventions, {}, listing)
        sharing = sharing_of(server, changes.listing.tools)
        return cls(changes, _offer(server, changes, sharing), sharing)


@attrs.define(eq=False)
class Tapped:
    """What agents reach through the tap, be it live or played."""

    tap: Tap
    changes: Changes
    offering: Offering

    async def reached(self, server: ServerSpec, link: Link, listing: Listing, stack: AsyncExitStack) -> McpServer:
        """Return how an agent reaches what is behind `link`, which lists this by now."""
        changes = self._named(server)
        trial = changes.trial(seed=server.seed, trial=server.trial, others=server.others)
        offered = Offered(server.name, server.dynamic_tools, changes, trial, CallLog())
        offered.take(listing)
        patience = partial(Patience, server.timeout, server.max_timeout)
        kept = link if server.keep is None else KeptLink(link, server.keep)
        passage = Passage(kept, offered, patience, Telling(server.name, server.tell), server.keep)
        return McpServer(
            name=server.name,
            transport="http",
            url=await stack.enter_async_context(self.tap.open(passage)),
            tools=passage.listing.names,
            # The tap notices first that a server does not answer, and tells the agent why.
            timeout=max(server.timeout, server.max_timeout or 0.0) + 2 * CHECK_SECONDS,
            log=passage.log,
            instructions=self.offering.offer.instructions,
            channel=Channel(passage),
        )

    def _named(self, server: ServerSpec) -> Changes:
        """Return the changes with the aliases of the condition, which are known when all its servers are."""
        if server.aliases != self.changes.aliases:
            self.changes = Changes.of(server.interventions, server.aliases, self.changes.original)
        return self.changes


async def tapped(server: ServerSpec, offering: Offering, stack: AsyncExitStack) -> Tapped:
    """Open a tap for what a server offers, until `stack` ends."""
    return Tapped(await stack.enter_async_context(tap(server.name)), offering.changes, offering)


@attrs.frozen(eq=False)
class PlayedServer:
    """A server that is played, by the tape of each attempt; nobody is connected to it."""

    tape: ServerTape
    tapped: Tapped

    @property
    def offer(self) -> ToolOffer:
        return self.tapped.offering.offer

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[McpServer]:
        tape = server.played or self.tape
        opened = tape.opened()
        known = opened.result or {} if opened is not None else {}
        number = server.keep.begin("opened") if server.keep is not None else 0
        if server.keep is not None:
            server.keep.end(number, known, opened.error if opened is not None else None)
        if opened is not None and opened.error is not None:
            raise error_in(opened.error)
        own = bool(known.get("own", not self.tapped.offering.sharing.shared))
        listing = Listing.told(known["listing"]) if "listing" in known else self.tapped.changes.original
        link = PlayedLink(tape, Audience(server.name, server.policy, _nothing), own)
        async with AsyncExitStack() as stack:
            yield await self.tapped.reached(server, link, listing, stack)


def _nothing() -> None:
    """Read no tools again: a recording has what was listed."""


def _offer(server: ServerSpec, changes: Changes, sharing: Sharing) -> ToolOffer:
    listing, original = changes.listing, changes.original if changes.interventions else None
    return ToolOffer(
        server=server.name,
        tools=listing.names,
        digest=listing.digest,
        definitions=listing.tools,
        instructions=listing.instructions,
        original=original.tools if original else None,
        original_digest=original.digest if original else None,
        original_instructions=original.instructions if original else None,
        unmatched=changes.unmatched,
        sharing=sharing,
    )
