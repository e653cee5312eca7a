"""Prices of models, and what trials and judgements cost by them."""

from __future__ import annotations

import math
from typing import Any

import attrs

from keval.records.transcript import Usage


def _is_amount(price: Price, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise ValueError(f"'{attribute.name}' must be US dollars per million tokens, 0 or more: {value}")


@attrs.frozen
class Price:
    """The price of a model in US dollars per million tokens, and where and when it was found.

    `cached` is the price of input tokens that the vendor had cached; `None` if it is that of all input. `source` names
    the price table with its version, or `config`; `date` is the ISO date on which the price was valid.
    """

    input: float = attrs.field(validator=_is_amount)
    output: float = attrs.field(validator=_is_amount)
    cached: float | None = attrs.field(default=None, validator=_is_amount)
    source: str | None = None
    date: str | None = None

    def of(self, usage: Usage) -> float | None:
        """Return what these tokens cost in US dollars; `None` if it is unknown how many there were.

        A free model costs 0, however many tokens there were.
        """
        if not (self.input or self.output or self.cached):
            return 0.0
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens) if self.cached is not None else 0
        fresh = usage.input_tokens - cached
        return (fresh * self.input + cached * (self.cached or 0.0) + usage.output_tokens * self.output) / 1e6


FREE = Price(0.0, 0.0)
"""The price of a simulated model."""


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


def dollars(usd: float) -> str:
    """Return an amount for people: `$1,234`, `$12.30`, `$0.41`, and two digits of what is less than ten cents."""
    if usd >= 1000 or usd == 0:
        return f"${usd:,.0f}"
    if usd >= 0.095:
        return f"${usd:.2f}"
    digits = 1 - math.floor(math.log10(usd))
    return f"${usd:.{digits}f}"
