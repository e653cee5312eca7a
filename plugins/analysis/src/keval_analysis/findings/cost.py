"""What trials and judgements cost together."""

from __future__ import annotations

import attrs


@attrs.frozen
class Cost:
    """US dollars that trials or judgements cost, as far as prices and tokens are known.

    `unknown` counts those whose price or tokens are unknown, and `usd` leaves them out; it is `None` if none is known.
    A simulated model costs 0.
    """

    usd: float | None = None
    unknown: int = 0

    def plus(self, usd: float | None) -> Cost:
        """Return the cost with one more."""
        if usd is None:
            return Cost(self.usd, self.unknown + 1)
        return Cost(usd if self.usd is None else self.usd + usd, self.unknown)

    def __add__(self, other: Cost) -> Cost:
        known = [usd for usd in (self.usd, other.usd) if usd is not None]
        return Cost(sum(known) if known else None, self.unknown + other.unknown)
