"""Prices of models, and what a trial costs by them."""

from __future__ import annotations

import attrs

from keval.records import Usage

__all__ = ["Cost", "Price"]


@attrs.frozen
class Price:
    """The price of a model in US dollars per million tokens, and where and when it was found.

    `cached` is the price of input tokens that the vendor had cached; `None` if it is that of all input.
    """

    input: float
    output: float
    cached: float | None = None
    source: str | None = None
    date: str | None = None

    def of(self, usage: Usage) -> float | None:
        """Return what these tokens cost in US dollars; `None` if it is unknown how many there were."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens) if self.cached is not None else 0
        fresh = usage.input_tokens - cached
        return (fresh * self.input + cached * (self.cached or 0.0) + usage.output_tokens * self.output) / 1e6


@attrs.frozen
class Cost:
    """US dollars that trials or judgements cost, as far as prices and tokens are known.

    `unknown` counts those whose price or tokens are unknown, and `usd` leaves them out; it is `None` if all are. A
    simulated model costs 0.
    """

    usd: float | None = None
    unknown: int = 0

    def plus(self, usd: float | None) -> Cost:
        """Return the cost with one more."""
        if usd is None:
            return Cost(self.usd, self.unknown + 1)
        return Cost((self.usd or 0.0) + usd, self.unknown)
