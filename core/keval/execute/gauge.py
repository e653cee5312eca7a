"""Gauges: how much of one resource a run has used up, and whether its budget bears more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

__all__ = ["Gauge", "Kind"]

Kind: TypeAlias = Literal["trial", "judgement"]


@attrs.define(eq=False)
class Gauge:
    """Counts one resource, in whole units, against the `most` that a budget allows; `None` if it allows any amount.

    What is in flight, and what nobody told, is taken to cost as much as the largest of its kind so far. `untold` counts
    the latter. `lacked` says that something was left out for lack of this resource.
    """

    most: int | None
    used: int = 0
    untold: int = 0
    lacked: bool = False
    _largest: Counter[Kind] = attrs.field(factory=Counter, init=False)

    @property
    def excess(self) -> int:
        """How much more was used than the budget allows."""
        return 0 if self.most is None else max(0, self.used - self.most)

    def fits(self, kind: Kind, in_flight: Mapping[Kind, int]) -> bool:
        """Return whether another trial or judgement may begin beside those in flight."""
        if self.most is None:
            return True
        reserved = sum(self._largest[each] * count for each, count in in_flight.items())
        return self.used < self.most and self.used + reserved + self._largest[kind] <= self.most

    def count(self, kind: Kind, amount: int | None, at_least: int = 0) -> None:
        """Count what a trial or judgement used; `None` if that is unknown, and then at least so much."""
        self.untold += amount is None
        used = max(at_least, self._largest[kind]) if amount is None else amount
        self.used += used
        self._largest[kind] = max(self._largest[kind], used)
