"""What one attempt is offered of a server whose tools may change while it runs."""

from __future__ import annotations

import json

import attrs

from keval.plugin import Blob, CallLog, DynamicTools, InterventionError
from keval_mcp.changes import Changes, TrialChanges
from keval_mcp.server.listing import Listing

__all__ = ["Offered"]


@attrs.define(eq=False)
class Offered:
    """What the server `name` offers to one attempt by now: `changes` of what it lists.

    `how` says what it means when the server lists other tools than before the first trial. With `fail`, the attempt
    proves nothing about its condition; `follow` offers the new list, whose SHA-256 is `held`; with `freeze` the first
    one stays. `calls` is the attempt's way through the changes.
    """

    name: str
    how: DynamicTools
    changes: Changes
    calls: TrialChanges
    log: CallLog
    held: str | None = attrs.field(default=None, init=False)
    listed: Listing = attrs.field(init=False)
    """What the server listed last."""
    _first: Listing = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.listed = self._first = self.changes.original

    @property
    def listing(self) -> Listing:
        """What the agent gets."""
        return self.changes.listing

    def take(self, listed: Listing) -> bool:
        """Take what the server lists now, and return whether the agent is offered something else by that."""
        self.listed = listed
        if self.how == "fail" and listed.digest != self._first.digest:
            self._contaminate(
                f"{_difference(self._first, listed)}; keep its tools as they are, or say by dynamic_tools: follow or"
                " freeze what is to be offered then"
            )
        if self.how != "follow" or listed.tools == self.changes.original.tools:
            return False
        try:
            self.changes = self.changes.again(listed.tools)
        except InterventionError as error:
            self._contaminate(
                f"{_difference(self._first, listed)}, which cannot be changed as the config says: {error}"
            )
            return False
        self.changes.lead(self.calls)
        written = json.dumps({"tools": self.listing.tools, "instructions": self.listing.instructions}, indent=2)
        blob = Blob.of(written.encode(), "application/json")
        self.held = blob.sha256
        self.log.blobs.append(blob)
        self.log.followed.append(self.listing.names)
        return True

    def _contaminate(self, why: str) -> None:
        if self.log.contaminated is None:
            self.log.contaminated = f"server '{self.name}' has other tools than before the first trial: {why}"


def _difference(first: Listing, now: Listing) -> str:
    """Return how two lists of tools differ, in words."""
    before, after = ({tool["name"]: tool for tool in listing.tools} for listing in (first, now))
    described = [
        name
        for name in before.keys() & after.keys()
        if any(before[name].get(key) != after[name].get(key) for key in ("description", "inputSchema"))
    ]
    told = {
        "without": [name for name in before if name not in after],
        "with": [name for name in after if name not in before],
        "with another description of": sorted(described),
    }
    return ", ".join(f"{word} {' and '.join(names)}" for word, names in told.items() if names)
