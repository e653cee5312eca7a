"""The price table of genai-prices, from the data that it ships with."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from keval.plugin import Price

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice, TieredPrices

_PROVIDERS = {
    "azure_ai": "azure",
    "bedrock": "aws",
    "codestral": "mistral",
    "cohere_chat": "cohere",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "moonshot": "moonshotai",
    "together_ai": "together",
    "vertex_ai": "google",
    "vertex_ai_beta": "google",
    "xai": "x-ai",
}
"""keval's names of providers that genai-prices calls otherwise."""
_NOT_BY_TOKENS = ("requests_kcount", "output_reasoning_mtok")
"""Prices that every call of a model adds, and that a `Price` cannot hold."""


class GenaiPrices:
    """Prices of input, output and cached input at the lowest tier, as they are now."""

    @property
    def providers(self) -> set[str]:
        """The providers of whose models it knows some prices."""
        from genai_prices.data import providers  # as below

        known = {provider.id for provider in providers}
        return known | {name for name, meant in _PROVIDERS.items() if meant in known}

    def price(self, model: str) -> Price | None:
        """Return the price of a model, given as `provider/name`; `None` if genai-prices does not know it."""
        # It takes half a second to import, and most runs need no price of it.
        import genai_prices

        provider, _, name = model.partition("/")
        wanted = _PROVIDERS.get(provider, provider)
        now = datetime.now(UTC)
        try:
            # Of no tokens: what is wanted are the prices of the model.
            found = genai_prices.calc_price(genai_prices.Usage(), name, provider_id=wanted, genai_request_timestamp=now)
        except LookupError:
            return None
        if found.provider.id != wanted:  # it looks for providers with similar names, too
            return None
        source = f"genai-prices {genai_prices.__version__}, {found.provider.id}/{found.model.id}"
        return _price(found.model_price, source, now.date().isoformat())


def _price(prices: ModelPrice, source: str, date: str) -> Price | None:
    fresh, output = _lowest(prices.input_mtok), _lowest(prices.output_mtok)
    if fresh is None or output is None or any(getattr(prices, name) is not None for name in _NOT_BY_TOKENS):
        return None
    return Price(fresh, output, _lowest(prices.cache_read_mtok), source, date)


def _lowest(price: Decimal | TieredPrices | None) -> float | None:
    """Return the price of the lowest tier in US dollars per million tokens."""
    if price is None:
        return None
    return float(price if isinstance(price, Decimal) else price.base)
