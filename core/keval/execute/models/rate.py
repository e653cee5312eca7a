"""The rate of a provider's or a model's requests and tokens: how long the next request has to wait for it."""

from __future__ import annotations

from time import monotonic

import attrs

from keval.config.evaluation import Rate

_BURST = 6.0
"""Seconds whose requests and tokens may be used at once."""


@attrs.define(eq=False)
class _Allowance:
    """What may be used of one thing: it grows evenly, up to `_BURST` seconds' worth, and may be overdrawn."""

    per_minute: float
    _left: float = attrs.field(init=False)
    _at: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left, self._at = self._most, monotonic()

    def seconds_until(self, least: float) -> float:
        """Return in how many seconds so much may be used; 0 or less if it may now."""
        now = monotonic()
        self._left = min(self._most, self._left + (now - self._at) * self.per_minute / 60)
        self._at = now
        return (least - self._left) * 60 / self.per_minute

    def use(self, amount: float) -> None:
        self._left -= amount

    @property
    def _most(self) -> float:
        # at least one, as a rate of fewer than ten requests a minute would admit none at all
        return max(1.0, self.per_minute * _BURST / 60)


@attrs.define(eq=False)
class RateLimit:
    """Spreads requests and tokens over the minutes. The tokens of a reply are known afterwards, and are made up for."""

    rate: Rate
    _requests: _Allowance | None = attrs.field(init=False)
    _tokens: _Allowance | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        limits = (self.rate.requests_per_minute, self.rate.tokens_per_minute)
        self._requests, self._tokens = (None if each is None else _Allowance(each) for each in limits)

    def seconds_to_wait(self) -> float:
        """Return in how many seconds another request may begin; 0 if it may now."""
        for_request = self._requests.seconds_until(1.0) if self._requests is not None else 0.0
        # What a request will take is unknown, so it begins as soon as nothing is overdrawn.
        for_tokens = self._tokens.seconds_until(0.0) if self._tokens is not None else 0.0
        return max(0.0, for_request, for_tokens)

    def begin(self) -> None:
        """Note that a request begins."""
        if self._requests is not None:
            self._requests.use(1.0)

    def spend(self, tokens: int) -> None:
        """Note the tokens of a reply."""
        if self._tokens is not None:
            self._tokens.use(tokens)
