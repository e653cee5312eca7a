"""What a server offers to one attempt by now, as the tools that it lists may change."""

from __future__ import annotations

import json

import attrs

from keval.errors import InterventionError
from keval.records.servers import CallLog
from keval.records.transcript import Blob
from keval.seams.contexts import DynamicTools
from keval_mcp.changes import TrialChanges
from keval_mcp.server.difference import difference
from keval_mcp.server.session import Listing


@attrs.define(eq=False)
class Offered:
    """What the server `name` offers to one attempt by now, by the changes in `calls`, the attempt's way through them.

    `how` says what it means when the server lists other tools than before the first trial. With `fail`, the attempt
    proves nothing about its condition; `follow` offers the new list, whose SHA-256 is `held`; with `freeze` the first
    one stays. `calls` is the attempt's way through the changes. With `tools_alone` it is offered nothing else.
    """

    name: str
    how: DynamicTools
    calls: TrialChanges
    log: CallLog
    tools_alone: bool = False
    held: str | None = attrs.field(default=None, init=False)
    listed: Listing = attrs.field(init=False)
    """What the server listed last."""
    _first: Listing = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.listed = self._first = self.calls.changes.original

    @property
    def listing(self) -> Listing:
        """What the agent gets."""
        return self.calls.changes.listing

    def take(self, listed: Listing) -> bool:
        """Take what the server lists now, and return whether the agent is offered something else by that."""
        self.listed = listed
        if self.how == "fail" and listed.digest != self._first.digest:
            self._contaminate(
                f"{difference(self._first, listed)}; keep its tools as they are, or say by dynamic_tools: follow or"
                " freeze what is to be offered then"
            )
        if self.how != "follow" or listed.tools == self.calls.changes.original.tools:
            return False
        return self._offer(listed)

    def begin(self, listed: Listing) -> None:
        """Take what the server lists to a client with the agent's capabilities as what it listed first."""
        if listed.tools != self.listed.tools:
            self._offer(listed)
        self.listed = self._first = listed

    def _offer(self, listed: Listing) -> bool:
        try:
            self.calls.changes = self.calls.changes.again(listed.tools)
        except InterventionError as error:
            self._contaminate(f"{difference(self._first, listed)}, which cannot be changed as the config says: {error}")
            return False
        written = json.dumps({"tools": self.listing.tools, "instructions": self.listing.instructions}, indent=2)
        blob = Blob.of(written.encode(), "application/json")
        self.held = blob.sha256
        self.log.blobs.append(blob)
        self.log.followed.append(self.listing.names)
        return True

    def _contaminate(self, why: str) -> None:
        if self.log.contaminated is None:
            self.log.contaminated = f"server '{self.name}' has other tools than before the first trial: {why}"
