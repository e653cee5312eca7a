"""The rate of a provider's or a model's requests and tokens: how long the next request has to wait for it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from time import monotonic

import attrs

from keval.config.evaluation import Rate
from keval.records.models import ModelRequest, ModelResponse

_BURST = 6.0
"""Seconds whose requests and tokens may be used at once."""
_BYTES_PER_TOKEN = 4
"""A rule of thumb for replies that tell no tokens."""
_COUNT = re.compile(rb'"(total_?tokens|totalTokenCount|input_tokens|output_tokens)"\s*:\s*(\d+)', re.IGNORECASE)
_TOTALS = (b"total_tokens", b"totaltokens", b"totaltokencount")


@attrs.define(eq=False)
class RateLimit:
    """Spreads requests and tokens over the minutes. The tokens of a reply are known afterwards, and are made up for."""

    rate: Rate
    _requests: float = attrs.field(init=False)
    _tokens: float = attrs.field(init=False)
    _at: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._at = monotonic()
        self._requests, self._tokens = (self._most(each) for each in attrs.astuple(self.rate))

    @property
    def wait(self) -> float:
        """Seconds until another request may begin; 0 if it may now."""
        now = monotonic()
        waits = [0.0]
        for per_minute, name, least in (
            (self.rate.requests_per_minute, "_requests", 1.0),
            (self.rate.tokens_per_minute, "_tokens", 0.0),
        ):
            if per_minute is not None:
                left = min(self._most(per_minute), getattr(self, name) + (now - self._at) * per_minute / 60)
                setattr(self, name, left)
                waits.append((least - left) * 60 / per_minute)
        self._at = now
        return max(waits)

    def begin(self) -> None:
        """Note that a request begins."""
        self._requests -= 1

    def spend(self, tokens: int) -> None:
        """Note the tokens of a reply."""
        self._tokens -= tokens

    @staticmethod
    def _most(per_minute: float | None) -> float:
        return max(1.0, (per_minute or 0.0) * _BURST / 60)


def counting(request: ModelRequest, response: ModelResponse, spent: Callable[[int], object]) -> None:
    """Let `spent` be told the tokens of a response when all of it is read: as it tells them, or estimated."""
    arriving = response.chunks

    async def counted() -> AsyncIterator[bytes]:
        told: dict[bytes, int] = {}
        size, tail = len(request.body), b""
        try:
            async for chunk in arriving:
                size += len(chunk)
                tail = tail[-_LONGEST_COUNT:] + chunk
                for name, count in _COUNT.findall(tail):
                    told[name.lower()] = max(told.get(name.lower(), 0), int(count))
                yield chunk
        finally:
            total = next((told[name] for name in _TOTALS if name in told), None)
            spent(total or sum(told.values()) or size // _BYTES_PER_TOKEN)

    response.chunks = counted()


_LONGEST_COUNT = 64
"""Bytes of a chunk that are looked at again with the next one, as a count may be split."""
