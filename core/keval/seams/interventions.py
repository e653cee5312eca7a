"""The seam of interventions: what reads those of a config, makes them, and checks them against what servers list.

In the group `keval.interventions`, keval asks for the name `contexts`, once a context of a config is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from keval.errors import FieldError
from keval.records.servers import ToolListing
from keval.seams import registry


class ContextChanges(Protocol):
    """Derives contexts from others, and changes them."""

    def read(self, source: Any, specs: Sequence[Any]) -> tuple[tuple[Any, ...], list[FieldError]]:
        """Return the `PluginSpec`s of a config's contexts with their interventions, and what is wrong with these."""
        ...

    def make(self, constructor: Any, contexts: Sequence[Any], *, played: bool) -> tuple[Any, ...]:
        """Return constructed contexts, changed as far as no server does so; problems are told to the constructor.

        If they are `played`, in a replay, the recordings that they name are not needed.
        """
        ...

    def check(self, context: Any, tool_listings: Sequence[ToolListing], tapped: Collection[str]) -> None:
        """Raise InterventionError where a context's interventions change nothing on its servers, or leave nothing."""
        ...


def context_changes() -> ContextChanges:
    """Return what changes contexts. Raises PluginError: it is not installed."""
    changes: ContextChanges = registry.load(registry.find("keval.interventions", "contexts"))()
    return changes
