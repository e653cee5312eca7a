"""Failures, counted by kind: of trials, retries, refused requests and scores."""

from __future__ import annotations

from collections import Counter

import attrs

_LONGEST = 160
"""Characters of a message that a summary keeps; the trial or score has all of it."""


@attrs.define
class FailureTally:
    """Counts failures by kind and keeps the first message of each, as one shortened line."""

    counts: Counter[str] = attrs.field(factory=Counter)
    messages: dict[str, str] = attrs.field(factory=dict)

    def add(self, kind: str, message: object) -> None:
        """Count a failure."""
        self.counts[kind] += 1
        # An adapter may have left something else than a text as the message.
        if kind not in self.messages and (line := " ".join(str(message).split())):
            self.messages[kind] = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
