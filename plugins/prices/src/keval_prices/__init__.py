"""What models cost, by the data of genai-prices."""

from keval_prices.table import GenaiPrices

__all__ = ["GenaiPrices"]
