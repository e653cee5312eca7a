"""The interventions on one server: what agents are offered in place of its listing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from keval.plugin import FieldError, Intervention, OtherResults, TrialInfo
from keval_mcp.changes.offering import Definition, Offering
from keval_mcp.changes.trial import TrialChanges
from keval_mcp.server.listing import Listing

__all__ = ["Changes"]


@attrs.frozen(slots=False)
class Changes:
    """A server's listing as agents get it, and the way back from its names.

    `original` is what the server lists, and `listing` has the definitions and instructions after all interventions and
    under their aliases. `names` maps the name of each tool that is offered to the server's own. `unmatched` are the
    names in interventions that no tool of the server has.
    """

    original: Listing
    listing: Listing
    interventions: tuple[Intervention, ...]
    aliases: Mapping[str, str]
    names: Mapping[str, str]
    unmatched: tuple[FieldError, ...] = ()

    @classmethod
    def of(cls, interventions: Sequence[Intervention], aliases: Mapping[str, str], listing: Listing) -> Changes:
        """Apply interventions, first to last, to what a server lists.

        Raises:
            InterventionError: two tools would have one name.
        """
        offering = Offering.of(listing.tools, listing.instructions)
        for number, intervention in enumerate(interventions):
            offering = offering.changed(intervention, number)
        changed = listing
        if interventions:
            changed = attrs.evolve(listing, tools=tuple(offering.tools.values()), instructions=offering.instructions)
        if aliases:
            tools = ({**tool, "name": aliases.get(tool["name"], tool["name"])} for tool in changed.tools)
            changed = attrs.evolve(changed, tools=tuple(tools))
        names = {aliases.get(name, name): origin for name, origin in offering.origins.items()}
        return cls(listing, changed, tuple(interventions), dict(aliases), names, offering.unmatched)

    @property
    def changed(self) -> bool:
        """Whether agents get anything else than what the server says."""
        return bool(self.interventions or self.aliases)

    def again(self, tools: tuple[Definition, ...]) -> Changes:
        """Make the same changes to other tools. Raises InterventionError: two tools would have one name."""
        return Changes.of(self.interventions, self.aliases, attrs.evolve(self.original, tools=tools))

    def trial(
        self, *, seed: int = 0, trial: TrialInfo | None = None, others: OtherResults | None = None
    ) -> TrialChanges:
        """Return the way of one attempt's calls. Chance is drawn by `seed` and `trial`.

        `others` has the results of another sample, for `results: shuffled`.
        """
        return TrialChanges(self.interventions, *self._ways(), seed, trial, others)

    def lead(self, calls: TrialChanges) -> None:
        """Lead the next calls of an attempt by these changes, in place of those that made it."""
        calls.names, calls.tools, calls.offered = self._ways()

    def _ways(self) -> tuple[Mapping[str, str] | None, Mapping[str, Definition], Sequence[Definition]]:
        tools = {tool["name"]: tool for tool in self.original.tools}
        return self.names if self.changed else None, tools, self.listing.tools
